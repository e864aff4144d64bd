// What an execution waited for at an event of its history, as far as the record says: GET …/replay?at=N.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { line, clock } from '../app/text.js';
import { trouble, loading, panel } from '../part/kit.js';
import { waitWord } from '../part/status.js';
import { linked } from '../part/linked.js';

/** @typedef {import('../types').ReplayWhy} Then */

const settled = 250; // ms after the slider's last step until the server is asked: it reads the whole history for an answer
const again = 2000; // ms until it is asked once more where it replays too much at a time
const kept = 200; // answers that are remembered

/** The answer for an event; an event that something has followed has the same one for ever. @param {string} id @param {import('../part/replay.js').Moment} m */
function useThen(id, m) {
  const [found, set] = useState(/** @type {{seq: number, why: Then|null, error: unknown}} */ ({ seq: 0, why: null, error: null }));
  const known = useRef(/** @type {Map<number, Then>} */ (new Map()));
  const more = m.seq === m.last; // what has followed the last event may not be read yet
  useEffect(() => {
    const remembered = known.current.get(m.seq);
    if (remembered) {
      set({ seq: m.seq, why: remembered, error: null });
      return undefined;
    }
    const stop = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const r = /** @type {import('../types').Replay} */ (await getJSON(`api/v1/executions/${id}/replay${query({ at: m.seq })}`, { signal: stop.signal }));
        if (!more && known.current.size < kept) known.current.set(m.seq, r.state.why);
        if (!stop.signal.aborted) set({ seq: m.seq, why: r.state.why, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        set({ seq: m.seq, why: null, error });
        if (/** @type {any} */ (error).status === 429) timer = window.setTimeout(ask, again);
      }
    };
    timer = window.setTimeout(ask, settled);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [id, m.seq, more]);
  return found;
}

/** @param {{x: import('../types').Execution, moment: import('../part/replay.js').Moment}} p */
export function WhyThen({ x, moment }) {
  const { seq, why, error } = useThen(x.id, moment);
  if (error) return trouble(error);
  if (!why) return loading();
  return html`
    <div class="stack" aria-busy=${seq !== moment.seq}>
      <p class=${`note user ${why.waiting === 'nothing' ? '' : why.waiting === 'not known' ? 'late' : 'run'}`} role="status">
        ${linked(why.summary)}
      </p>
      <div class="split">
        ${panel({ title: 'What is recorded', children: html`
          <div class="body stack">
            <dl class="facts">
              <dt>Waited for</dt>
              <dd>${waitWord(why.waiting)}</dd>
              ${why.until ? html`<dt>Until</dt><dd class="num">${clock(why.until)}</dd>` : null}
              ${why.queue ? html`<dt>Queue</dt><dd class="user">${line(why.queue)}</dd>` : null}
              ${why.key
                ? html`<dt>Key</dt><dd><a href=${'work' + query({ key: why.key })} class="user">${line(why.key)}</a></dd>`
                : null}
              ${why.worker ? html`<dt>Worker</dt><dd class="mono user">${line(why.worker)}</dd>` : null}
              ${why.tasks ? html`<dt>Open tasks</dt><dd class="user">${line(why.tasks.join(', '), 500)}</dd>` : null}
            </dl>
            ${why.facts.length > 0 ? html`<ul class="tight user">${why.facts.map((f) => html`<li>${linked(f)}</li>`)}</ul>` : null}
          </div>` })}
        ${panel({ title: 'What is not known', children: html`
          <div class="body">
            ${why.not_known.length > 0
        ? html`<ul class="tight user">${why.not_known.map((f) => html`<li>${linked(f)}</li>`)}</ul>` : html`
              <p class="muted">The record has all of it.</p>`}
          </div>` })}
      </div>
    </div>`;
}

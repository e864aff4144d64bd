// The numbered history of an execution: every event, without gaps, over all attempts.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { follow } from '../app/stream.js';
import { withQuery } from '../app/router.js';
import { line, clock, duration, number } from '../app/text.js';
import { gist, json } from '../part/json.js';
import { members } from '../part/members.js';
import { ownersView } from '../part/owners.js';
import { save } from '../app/save.js';
import { now, trouble, loading, panel, empty } from '../part/kit.js';

/** @typedef {import('../types').Event & {raw?: string, line: string}} Event an event, its data as the server wrote them, and all of it */

const page = 200; // events in the document at a time

/** @param {Event} e @param {Event|undefined} before @param {number} at the event that is replayed, or 0 */
const entry = (e, before, at) => html`
  <li class=${`event ${at === 0 ? '' : e.seq === at ? 'at-it' : e.seq > at ? 'ahead' : ''}`} key=${e.seq}>
    <a class="muted num right" href=${withQuery({ at: String(e.seq) })} aria-label=${`${e.seq}: replay up to this event`}
        aria-current=${e.seq === at ? 'step' : undefined}>
      ${e.seq}
    </a>
    <span class="at num muted" title=${e.at}>${clock(e.at, true)}</span>
    <div class="what">
      <div>
        <strong>${line(e.type, 80)}</strong> ${before ? html`
          <span class="muted small num">+${duration(Date.parse(e.at) - Date.parse(before.at))}</span>` : null}
      </div>
      ${e.data && Object.keys(/** @type {any} */ (e.data)).length > 0
        ? html`
          <details><summary class="small mono">${gist(e.raw || '')}</summary>${json(e.raw || '', `Data of event ${e.seq}`)}</details>`
        : null}
    </div>
  </li>`;

/** @param {import('./execution.js').Shown} p */
export function History({ x, moment }) {
  const list = useRef(/** @type {Event[]} */ ([]));
  const [, draw] = useState(0);
  const [from, setFrom] = useState(0);
  useEffect(() => { if (moment) setFrom(Math.floor((moment.seq - 1) / page) * page); }, [moment?.seq]);
  const [over, setOver] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    list.current = [];
    let frame = 0;
    const soon = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw((n) => n + 1); }); };
    const stop = follow(`api/v1/executions/${x.id}/events`, (event, data, raw) => {
      if (event === 'event' && data.seq > (list.current.at(-1)?.seq || 0)) list.current.push({ ...data, raw: members(raw).data, line: raw });
      if (event === 'end') setOver(true);
      soon();
    }, { failed: setError });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [x.id]);
  const all = list.current;
  if (error) return trouble(error);
  if (all.length === 0) return over ? html`<div class="panel">${empty('No history', html`<p>There is no event.</p>`)}</div>` : loading();
  const shown = all.slice(from, from + page);
  let attempt = -1;
  return panel({
    title: 'History',
    actions: html`
      ${moment ? null : html`<a class="button toggle" href=${withQuery({ at: String(all.length) })}>Replay</a>`}
      <span class="muted small num">
        ${number(all[0].seq)} … ${number(/** @type {Event} */ (all.at(-1)).seq)}
        ${all.length === all[all.length - 1].seq ? ', no gap' : ''}
        ${over ? ', complete' : ', following'}
      </span>
      ${over ? html`
        <button type="button" class="plain"
            onClick=${() => save(all.map((e) => e.line).join('\n') + '\n', `${x.id}.jsonl`, 'application/jsonl')}>
          Download
        </button>` : null}
      ${all.length > page
        ? html`
          <button type="button" class="plain" disabled=${from === 0} onClick=${() => setFrom(Math.max(0, from - page))}>
            Earlier
          </button>
          <button type="button" class="plain" disabled=${from + page >= all.length} onClick=${() => setFrom(from + page)}>
            Later
          </button>`
        : null}`,
    children: html`
      ${ownersView({ events: moment ? all.slice(0, moment.seq) : all, now: moment ? Date.parse(moment.event.at) : over ? 0 : now.value })}
      <ol>
        ${shown.map((e, i) => {
      const band = e.attempt !== attempt;
      attempt = e.attempt;
      return [band ? html`
          <li class="event attempt" key=${`a${e.attempt}`}>
            ${e.attempt === 0 ? 'Before the first attempt' : `Attempt ${e.attempt}`}
          </li>` : null, entry(e, all[from + i - 1], moment?.seq || 0)];
    })}
      </ol>`,
  });
}

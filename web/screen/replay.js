// The slider over the numbered history of an execution. The address keeps the event: ?at=137 shows the same to everybody.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { go, withQuery } from '../app/router.js';
import { line, duration, clock, number } from '../app/text.js';
import { momentAt } from '../part/replay.js';
import { statusPill } from '../part/status.js';
import { trouble } from '../part/kit.js';

/** @typedef {import('../types').Event} Event */

const most = 5000; // events of a history that are replayed
const settled = 250; // ms after the slider's last step until the address is written: browsers refuse a page that writes it for each

/** The history so far. @param {string} id @param {boolean} growing */
function useEvents(id, growing) {
  const [state, set] = useState(/** @type {{events: Event[], more: boolean, error: unknown}} */ ({ events: [], more: false, error: null }));
  useEffect(() => {
    let mine = true;
    (async () => {
      /** @type {Event[]} */
      const events = [];
      for (let after = ''; ;) {
        const page = /** @type {any} */ (await getJSON(`api/v1/executions/${id}/events${query({ after, limit: 1000 })}`));
        events.push(...page.events);
        after = page.next_cursor;
        if (!page.more || events.length >= most) {
          if (mine) set({ events: events.slice(0, most), more: page.more, error: null });
          return;
        }
      }
    })().catch((error) => { if (mine) set((s) => ({ ...s, error })); });
    return () => { mine = false; };
  }, [id, growing]);
  return state;
}

/** @param {{events: Event[], more: boolean, error: unknown, at: number, tasks: boolean, hold: (seq: number) => void}} p hold: shows an event that the address does not name yet */
function Replay({ events, more, error, at, tasks, hold }) {
  const [playing, play] = useState(false);
  const last = events.length;
  const to = (/** @type {number} */ n) => {
    hold(0);
    go(withQuery({ at: String(Math.max(1, Math.min(n, last))) }), { replace: true });
  };
  useEffect(() => {
    if (!playing) return undefined;
    if (at >= last) {
      play(false);
      return undefined;
    }
    const timer = setTimeout(() => to(at + 1), 700);
    return () => clearTimeout(timer);
  }, [playing, at, last]);
  const m = momentAt(events, at);
  if (error) return trouble(error);
  if (!m) return html`<p class="note" role="status">Reading the history …</p>`;
  return html`
    <section class="panel replay" aria-label="Replay">
      <div class="row">
        <button type="button" aria-label="Event before" aria-keyshortcuts="k" disabled=${m.seq <= 1} onClick=${() => to(m.seq - 1)}>
          ←
        </button>
        <input type="range" min="1" max=${last} value=${m.seq} aria-label="Event of the history"
            aria-valuetext=${`Event ${m.seq} of ${last}: ${m.event.type}`}
            onInput=${(/** @type {any} */ e) => { play(false); hold(Number(e.target.value)); }} />
        <button type="button" aria-label="Event after" aria-keyshortcuts="j" disabled=${m.seq >= last} onClick=${() => to(m.seq + 1)}>
          →
        </button>
        <button type="button" onClick=${() => { if (!playing && m.seq >= last) to(1); play(!playing); }}>
          ${playing ? 'Stop' : 'Play'}
        </button>
        <a class="button" href=${withQuery({ at: undefined })}>Now</a>
      </div>
      <p class="row" role="status">
        <span class="num">Event ${number(m.seq)} of ${number(last)}${more ? ' and more' : ''}</span>
        <strong>${line(m.event.type, 60)}</strong>
        ${statusPill({ status: m.status })}
        <span class="num muted">${clock(m.event.at, true)}, ${duration(m.since)} after the first</span>
      </p>
      ${tasks ? html`
        <p class="muted small">
          Which tasks had been started is from this history; how far they were goes by the clocks of the workers that ran them.
        </p>` : null}
    </section>`;
}

/** The slider, and beneath it what the view shows of that moment. @param {{id: string, growing: boolean, at: number, tasks: boolean, view: (m: import('../part/replay.js').Moment) => any}} p */
export function Replayed({ id, growing, at, tasks, view }) {
  const history = useEvents(id, growing);
  const [held, hold] = useState(0); // the event under the slider, while the address names another
  useEffect(() => hold(0), [at]);
  useEffect(() => {
    if (held === 0) return undefined;
    const timer = setTimeout(() => {
      go(withQuery({ at: String(held) }), { replace: true });
      hold(0);
    }, settled);
    return () => clearTimeout(timer);
  }, [held]);
  const shown = held || at;
  const moment = momentAt(history.events, shown);
  return html`${h(Replay, { ...history, at: shown, tasks, hold })}${moment ? view(moment) : null}`;
}

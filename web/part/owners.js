// The owners of an execution in order, by its numbered history: the server until a worker gets an attempt, that worker, and the server again.
import { html } from '../vendor/preact.js';
import { line, clock, duration, number, count } from '../app/text.js';
import { look, open, statusShape } from './status.js';

/** @typedef {import('../types').Event} Event */
/** @typedef {{worker: string, attempt: number, at: number, to: number, status: string, lost: boolean, end: string}} Owner worker: '' while the server has it; at, to: ms, to NaN while it has it still; end: why it was taken back, or the code of an error */

const shown = 24; // owners, the latest
const ends = new Set(['completed', 'failed', 'cancelled', 'timed_out', 'reused', 'given']);

/**
 * The owners, and the two moments of an ordered end; NaN without one.
 * @param {Event[]} events from the first on
 * @returns {{owners: Owner[], ordered: number, confirmed: number}}
 */
export function ownersOf(events) {
  /** @type {Owner[]} */
  const owners = [];
  let [ordered, confirmed] = [NaN, NaN];
  for (const e of events) {
    const at = Date.parse(e.at);
    const data = /** @type {any} */ (e.data) || {};
    const last = owners.at(-1);
    const next = (/** @type {string} */ worker) => {
      if (last && Number.isNaN(last.to)) last.to = at;
      owners.push({ worker, attempt: e.attempt, at, to: NaN, status: 'requested', lost: false, end: '' });
    };
    if (e.type === 'requested') next('');
    else if (e.type === 'provisioning' && data.worker !== 'engine') next(String(data.worker ?? ''));
    else if (last && e.type === 'lost') Object.assign(last, { to: at, lost: true, status: 'failed', end: String(data.reason ?? '') });
    else if (last && ends.has(e.type)) {
      if (data.ordered_at) [ordered, confirmed] = [Date.parse(data.ordered_at), at];
      const status = e.type === 'reused' || e.type === 'given' ? 'completed' : e.type;
      if (Number.isNaN(last.to)) Object.assign(last, { to: at, status, end: String(data.code ?? '') });
      continue;
    }
    const now = owners.at(-1);
    if (now && Number.isNaN(now.to) && ['scheduled', 'provisioning', 'running'].includes(e.type)) now.status = e.type;
  }
  return { owners, ordered, confirmed };
}

/** How it is with an owner, or how that ended. @param {Owner} o */
const state = (o) => (o.lost ? `taken back: ${line(o.end, 200)}` : !Number.isNaN(o.to) && open(o.status) ? 'until a worker had it' : `${look(o.status).word.toLowerCase()}${o.end && o.end !== o.status ? `: ${line(o.end, 60)}` : ''}`);

/** @param {{events: Event[], now: number}} p */
export function ownersView({ events, now }) {
  const { owners, ordered, confirmed } = ownersOf(events);
  if (!owners.some((o) => o.worker) && Number.isNaN(ordered)) return null;
  const from = Math.max(0, owners.length - shown);
  return html`
    <section class="body stack" aria-label="Who had it">
      <ol class="chain">
        ${owners.slice(from).map((o, i) => html`
          <li key=${from + i}>
            <div class="stop">
              <span class=${look(o.status).tone}>${statusShape(o.status)}</span>
              <span class="user">${o.worker ? line(o.worker, 80) : 'The server'}</span>
              <span class="num small muted">${duration((Number.isNaN(o.to) ? now : o.to) - o.at)}</span>
              <span class="small muted user">Attempt ${o.attempt}, ${state(o)}</span>
            </div>
          </li>`)}
      </ol>
      ${from > 0
        ? html`<p class="muted small">${count(from, 'owner')} before these ${from === 1 ? 'is' : 'are'} not drawn.</p>`
        : null}
      ${Number.isNaN(ordered)
        ? null
        : html`
          <p>
            Its end was ordered at ${clock(new Date(ordered).toISOString(), true)} and confirmed at ${clock(new Date(confirmed).toISOString(), true)}
            , ${duration(confirmed - ordered)} later${owners[owners.length - 1].worker ? ': nothing of it is left running' : ''}.
          </p>`}
    </section>`;
}

// Cancelling and running again all executions that the filters of the list select, or those that are marked: first what it would do, then a
// question, then what became of each.
import { html, h, useEffect, useRef, useState } from '../vendor/preact.js';
import { post, query, Problem } from '../app/api.js';
import { line, count, number, shortID } from '../app/text.js';
import { statusPill, open as isOpen } from '../part/status.js';
import { dialog, trouble } from '../part/kit.js';
import { newKey } from '../app/key.js';
import { asked } from '../app/keys.js';

/** @typedef {import('../types').BulkResult} BulkResult */
/** @typedef {{path: string, word: string, key: string, all: string, doing: string, done: string, danger: boolean, says: string}} Deed */

/** @type {Record<string, Deed>} */
const deeds = {
  cancel: { path: 'cancel', word: 'Cancel', key: 'c', all: 'Cancel all …', doing: 'Cancelling', done: 'cancelled, or ordered to end', danger: true, says: 'What waits ends at once. What runs is killed, and ends once its worker has confirmed that nothing is left running.' },
  retry: { path: 'retry', word: 'Run again', key: 'r', all: 'Run all again …', doing: 'Submitting', done: 'submitted again', danger: false, says: 'Each request is submitted anew, as an execution of its own. The old ones stay as they are.' },
  rerun: { path: 'retry', word: 'Rerun', key: '', all: 'Rerun all …', doing: 'Submitting', done: 'rerun', danger: false, says: 'Each runs again from where it failed, as an execution of its own that reuses what completed. The old ones stay as they are.' },
};

const shownRefusals = 20;

/** How many reruns are submitted at the same time. */
const rerunsAtOnce = 8;

/**
 * Reruns what a page of a dry run would retry from where it failed, and returns the results.
 * @param {BulkResult} page @param {string} key @returns {Promise<BulkResult>}
 */
async function rerun(page, key) {
  const left = page.executions.filter((x) => !x.problem);
  const refused = page.executions.filter((x) => x.problem);
  const work = async () => {
    for (let x = left.shift(); x; x = left.shift()) {
      try {
        await post(`api/v1/executions/${x.id}/rerun`, {}, { 'Idempotency-Key': `${key}:${x.id}` });
      } catch (err) {
        if (!(err instanceof Problem) || ![404, 409, 422].includes(err.status)) throw err;
        refused.push({ ...x, problem: err.problem });
      }
    }
  };
  await Promise.all(Array.from({ length: rerunsAtOnce }, work));
  return { ...page, done: page.selected - refused.length, executions: refused };
}

/**
 * @param {{filter: Record<string, string|string[]|boolean|undefined>, ids?: string[], which: string, look: () => void, asking?: (open: boolean) => void}} p ids: those that are marked, in the place of what the filter selects
 */
function Deed({ filter, ids, which, look, asking }) {
  const deed = deeds[which];
  const [plan, setPlan] = useState(/** @type {BulkResult|null} */ (null));
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState(/** @type {{selected: number, done: number, refused: BulkResult['executions'], over: boolean}|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const key = useRef(''); // the same when the order is repeated after an error
  const going = useRef(0);
  /** @param {Record<string, unknown>} body @param {string} [cursor] @returns {Promise<BulkResult>} */
  const send = (body, cursor) => post(`api/v1/executions:${deed.path}` + query(ids ? {} : { ...filter, cursor }), ids ? { ...body, ids } : body, which === 'retry' ? { 'Idempotency-Key': key.current } : undefined);

  const ask = async () => {
    const mine = ++going.current;
    key.current = newKey();
    setPlan(null);
    setDone(null);
    setError(null);
    setReason('');
    setOpen(true);
    asking?.(true);
    try {
      const answer = await send({ dry_run: true });
      if (mine === going.current) setPlan(answer);
    } catch (err) {
      if (mine === going.current) setError(err);
    }
  };
  useEffect(() => { if (ids && asked(deed.key)) ask(); }, []);
  const leave = () => {
    going.current++;
    setOpen(false);
    asking?.(false);
    if (done) look();
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    const mine = ++going.current;
    setBusy(true);
    setError(null);
    let cursor = '';
    const sum = { selected: 0, done: 0, refused: /** @type {BulkResult['executions']} */ ([]), over: false };
    try {
      do { // a thousand at a time, until all are done or the dialog is closed
        const r = which === 'rerun' ? await rerun(await send({ dry_run: true }, cursor || undefined), key.current) : await send(reason ? { reason } : {}, cursor || undefined);
        sum.selected += r.selected;
        sum.done += r.done;
        sum.refused.push(...r.executions.filter((x) => x.problem).slice(0, shownRefusals - sum.refused.length));
        cursor = r.next_cursor || '';
        sum.over = cursor === '';
        if (mine === going.current) setDone({ ...sum });
      } while (cursor && mine === going.current);
    } catch (err) {
      if (mine === going.current) setError(err);
    }
    setBusy(false);
  };

  const many = plan ? (plan.next_cursor ? `${number(plan.done)} or more executions` : count(plan.done, 'execution')) : '';
  const title = done ? `${number(done.done)} ${deed.done}` : plan ? `${deed.word} ${many}?` : `${deed.word} all of these?`;
  const byStatus = plan ? tally(plan) : [];
  return html`
    ${ids ? html`<button type="button" aria-keyshortcuts=${deed.key} onClick=${ask}>${deed.word} …</button>` : html`
      <button type="button" onClick=${ask}>${deed.all}</button>`}
    ${dialog({ name: title, open, close: leave }, html`
      <form onSubmit=${carryOut}>
        <div class="body">
          <h2 aria-live="polite">${title}</h2>
          ${done
            ? html`
              ${done.refused.length > 0 ? html`
                <p>Refused were ${number(done.selected - done.done)}:</p>
                <ul class="small">
                  ${done.refused.map((x) => html`
                    <li>
                      <a class="mono" href=${`executions/${x.id}`}>${shortID(x.id)}</a> <span class="user">
                        ${line(x.problem?.detail, 200)}
                      </span>
                    </li>`)}
                </ul>` : null}
              ${done.over ? null : html`<p class="muted" role="status">${deed.doing} …</p>`}`
            : plan ? html`
              <p>
                ${plan.done === 0 ? ids ? 'None of those that are marked can be.' : 'Nothing of what the filters select can be.' : deed.says}
              </p>
              ${plan.done > 0 ? html`
                <p class="row">
                  ${byStatus.map(([status, n]) => html`
                    <span class="row">${statusPill({ status })} <span class="num">${number(n)}</span></span>`)}
                </p>` : null}
              ${which === 'cancel' && plan.done > 0 ? html`
                <div class="field">
                  <label for="bulk-reason">Reason, kept in each history (optional)</label>
                  <input id="bulk-reason" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} />
                </div>` : null}`
            : error ? null
            : html`<p class="muted" role="status">Looking what that would be …</p>`}
          ${trouble(error)}
        </div>
        <footer>
          ${done && (done.over || error)
            ? html`<button type="button" class="primary" onClick=${leave}>Close</button>`
            : html`
              <button type="button" onClick=${leave}>${done ? 'Stop here' : 'Leave it'}</button>
              <button type="submit" class=${deed.danger ? 'danger' : 'primary'} disabled=${busy || !plan || plan.done === 0}>
                ${plan && plan.done > 0 ? `${deed.word} ${count(plan.done, 'execution')}${plan.next_cursor ? ' or more' : ''}` : deed.word}
              </button>`}
        </footer>
      </form>`)}`;
}

/** How many there are of each status, the most first. @param {BulkResult} plan @returns {[string, number][]} */
function tally(plan) {
  const all = new Map();
  for (const x of plan.executions) if (!x.problem) all.set(x.status, (all.get(x.status) || 0) + 1);
  return [...all].sort((a, b) => b[1] - a[1]);
}

/**
 * The buttons for the executions that the filters select.
 * @param {{filter: Record<string, string|string[]|boolean|undefined>, chosen: string[], look: () => void}} p chosen: the groups of states that the filter names
 */
export const Bulk = ({ filter, chosen, look }) => html`
  <span class="row all">
    ${chosen.length === 0 || chosen.some((g) => g === 'waiting' || g === 'running') ? h(Deed, { key: 'cancel', which: 'cancel', filter, look }) : null}
    ${chosen.length === 0 || chosen.every((g) => g !== 'waiting' && g !== 'running') ? h(Deed, { key: 'retry', which: 'retry', filter, look }) : null}
    ${chosen.length === 0 || chosen.every((g) => g !== 'waiting' && g !== 'running') ? h(Deed, { key: 'rerun', which: 'rerun', filter, look }) : null}
  </span>`;

/**
 * The actions for marked rows. They are at the lower edge, so that no row moves when the first one is marked.
 * @param {{marked: Map<string, string>, clear: () => void, look: () => void, asking: (open: boolean) => void}} p marked: their states by id; asking: told when a question about them opens and closes
 */
export const Marked = ({ marked, clear, look, asking }) => {
  const ids = [...marked.keys()];
  const states = [...marked.values()];
  return html`
    <div class="marked" role="group" aria-label="Marked executions">
      <strong class="num" role="status">${number(ids.length)} marked</strong>
      ${states.some(isOpen) ? h(Deed, { key: 'cancel', which: 'cancel', filter: {}, ids, look, asking }) : null}
      ${states.some((s) => !isOpen(s)) ? h(Deed, { key: 'retry', which: 'retry', filter: {}, ids, look, asking }) : null}
      ${ids.length === 2 ? html`<a class="button" href=${'compare' + query({ a: ids[1], b: ids[0] })}>Compare</a>` : null}
      <button type="button" class="plain" aria-keyshortcuts="Escape" onClick=${clear}>Clear</button>
    </div>`;
};

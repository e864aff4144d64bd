// The executions that wait in a queue or for a concurrency key, and the holders of the key.
import { html, h, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { useLooked } from '../app/looked.js';
import { line, number, count, shortID } from '../app/text.js';
import { shownAs, statusPill } from '../part/status.js';
import { since, trouble, loading, panel, scroller, empty, labelChips } from '../part/kit.js';
import { isMine } from '../part/mine.js';
import { behind, heldBy, passed, placesOf, wouldGo, yoursIn } from '../part/standing.js';
import { actionName } from './executions.js';
import { EndIt } from './orderdialog.js';

/** @typedef {import('../types').Execution} Execution */
/** @typedef {import('../types').Standing} Standing */

const shown = 100; // places of a line

/** @param {Execution} x @param {string} label */
export const named = (x, label) => html`
  <div class="name">
  <a class="user" href=${`executions/${x.id}/why`}>${actionName(x)}</a>
  ${x.task ? html`<span class="small muted user">${line(x.task, 60)}${x.index ? `[${x.index}]` : ''}</span>` : null}
  <span class="mono muted small" title=${x.id}>${shortID(x.id)}</span>
  ${isMine(x.labels, label) ? html`<span class="chip yours">yours</span>` : null}
  ${labelChips(x.labels)}</div>`;

/** By whom a row was passed. @param {Execution[]} [by] */
const passedBy = (by) => (by ? html`
  <div class="small muted">
  passed by <a class="mono" href=${`executions/${by[0].id}`} title=${by[0].id}>${shortID(by[0].id)}</a> of priority ${by[0].priority}
  ${by.length > 1 ? ` and ${number(by.length - 1)} more` : ''}</div>` : null);

/** @param {{rows: Standing[], total: number, name: string, mine: string, yours: Standing[], holders?: Execution[], go?: number, since: (x: Execution) => string|undefined}} p go: how many are marked, as they would go */
const places = ({ rows, total, name, mine, yours, holders = [], go = 0, since: from }) => {
  const jumped = passed(rows, holders);
  return html`
    ${mine ? html`
    <p class="body yours-say" role="status">
    ${yours.length > 0 ? html`<strong>Yours: ${placesOf(yours, total)}</strong>.` : html`
    <span class="muted">None of these is yours.</span>`}</p>` : null}
    ${scroller(name, html`
    <table class="places">
    <thead>
    <tr>
    <th scope="col" class="right place">Place</th>
    <th scope="col">Execution</th>
    <th scope="col" class="right">Priority</th>
    <th scope="col" class="right">Since</th></tr></thead>
    <tbody>
    ${rows.map((s) => html`
    <tr key=${s.execution.id} class=${isMine(s.execution.labels, mine) ? 'mine' : ''}>
    <td class="right num">${number(s.place)}</td>
    <td>
    ${named(s.execution, mine)}
    ${s.place <= go ? html`<span class="chip would">would start</span>` : null}
    ${passedBy(jumped.get(s.execution.id))}</td>
    <td class="right num">${s.execution.priority || html`<span class="muted">0</span>`}</td>
    <td class="right num nowrap">${since(from(s.execution))}</td></tr>`)}</tbody></table>`)}
    ${behind(rows, total) > 0 ? html`<p class="body muted">${number(behind(rows, total))} more behind these.</p>` : null}`;
};

/** @param {string} path @param {string} mine a label @returns {{all: any, yours: any, error: unknown, again: () => void}} */
function useLine(path, mine) {
  const { data, error, again } = useLooked(() => Promise.all([getJSON(path), mine ? getJSON(`${path}&label=${encodeURIComponent(mine)}`) : null]), 3000, [path, mine], true);
  return { all: data?.[0], yours: data?.[1], error, again };
}

/** @param {{queue: string, mine: string, needs: (lane: any) => any, close: string}} p */
export function QueueLine({ queue, mine, needs, close }) {
  const { all, yours, error } = useLine(`api/v1/queues/${encodeURIComponent(queue)}/line` + query({ limit: shown }), mine);
  const lanes = all?.lanes || [];
  return panel({
    title: `Line of queue ${line(queue, 120)}`, actions: html`<a class="button toggle" href=${close}>Close</a>`,
    children: !all ? (error ? trouble(error) : loading()) : html`
      ${trouble(error)}
      ${lanes.length === 0
        ? empty('Nothing waits', html`<p>What comes now is taken as soon as a worker has a free slot.</p>`)
        : lanes.map((/** @type {import('../types').Lane} */ l, /** @type {number} */ i) => html`
        <section key=${i} aria-label=${`Line ${i + 1}`}>
        ${lanes.length > 1 || l.paused_action || l.handler || l.runtime || l.worker_labels ? html`
        <p class="body lane-head">
        <strong>${count(l.ready, 'execution')}</strong> for ${l.paused_action ? html`
        <a class="user" href=${`definitions/${encodeURIComponent(l.paused_action)}`}>${line(l.paused_action, 120)}</a>
        , which is paused`
          : l.handler || l.runtime || l.worker_labels ? html`workers with ${needs(l)}` : 'any worker'}</p>` : null}
        ${places({ rows: l.line, total: l.ready, name: `Line ${i + 1}`, mine, yours: yoursIn(l, yours?.lanes),
          since: (x) => x.queued_at || x.created_at })}</section>`)}
      ${all.more ? html`<p class="body muted">The queue has more lines than these.</p>` : null}`,
  });
}

/** @param {{of: string, mine: string, workers: Map<string, string>, close: string}} p of: a key; workers: their names by session */
export function KeyLine({ of, mine, workers, close }) {
  const { all, yours, error, again } = useLine('api/v1/keys:line' + query({ key: of, limit: shown }), mine);
  const [limit, setLimit] = useState('');
  /** @type {Execution[]} */
  const holders = all?.holders || [];
  const go = all && Number(limit) > 0 ? wouldGo(Number(limit), all.held, all.waiting) : 0;
  return panel({
    title: `Key ${line(of, 120)}`, actions: html`
      ${all ? html`<span class="muted small">${all.held} of ${all.limit || '–'} held, ${number(all.waiting)} waiting</span>` : null}
      <a class="button toggle" href=${close}>Close</a>`,
    children: !all ? (error ? trouble(error) : loading()) : html`
      ${trouble(error)}
      ${holders.length === 0 ? html`<p class="body muted">No execution holds it.</p>` : scroller('Holders', html`
      <table class="places">
      <thead>
      <tr>
      <th scope="col">Held by</th>
      <th scope="col">Status</th>
      <th scope="col" class="right">Since</th>
      <th scope="col">Worker</th>
      <th scope="col"><span class="sr">Orders</span></th></tr></thead>
      <tbody>
      ${holders.map((x) => html`
      <tr key=${x.id} class=${isMine(x.labels, mine) ? 'mine' : ''}>
      <td>${named(x, mine)}</td>
      <td>${statusPill({ status: shownAs(x) })}</td>
      <td class="right num nowrap">${since(x.claimed_at || x.queued_at || x.created_at)}</td>
      <td class="user nowrap">${x.worker ? heldBy(x, workers) : html`<span class="muted">${heldBy(x, workers) || '–'}</span>`}</td>
      <td class="right">${h(EndIt, { id: x.id, status: x.status, name: actionName(x), again })}</td></tr>`)}</tbody></table>`)}
      ${all.line.length === 0 && all.waiting === 0
        ? html`<p class="body muted">None waits for it.</p>`
        : html`
        <h3 class="body between">Waiting, in the order in which they go</h3>
        <div class="body">
        <div class="row what">
        <label for="what-limit">If the limit were</label>
        <input id="what-limit" type="number" min="1" max="100000" value=${limit} placeholder=${all.limit || ''}
            onInput=${(/** @type {any} */ e) => setLimit(e.target.value)} />
        <span role="status">
        ${Number(limit) > 0 ? `${go === 0 ? 'none' : number(go)} of these would start now.` : 'how many of these would start now?'}
        </span></div></div>
        ${places({ rows: all.line, total: all.waiting, name: 'Line of the key', mine, holders, go, yours: yours?.line || [], since: (x) => x.created_at })}`}`,
  });
}

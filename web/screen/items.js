// All executions of one task of a workflow, its items or its rounds: by status, in their order or the longest first.
import { html } from '../vendor/preact.js';
import { route, withQuery } from '../app/router.js';
import { duration, number, count } from '../app/text.js';
import { byLength, ran } from '../part/items.js';
import { paged } from '../part/paged.js';
import { look, statuses, statusPill, statusShape } from '../part/status.js';
import { now, trouble, loading, empty } from '../part/kit.js';
import { useItems } from './taskitems.js';

/** @typedef {import('../types').Task} Task */

/** @param {{id: string, task: Task}} p id: of the workflow */
export function Items({ id, task }) {
  const q = route.value.query;
  const asked = q.get('items') || '';
  const wanted = statuses.includes(asked) ? asked : '';
  const longest = q.get('longest') === 'true';
  const { page, error } = useItems({ id, task, wanted });
  const counts = task.counts || {};
  const toggle = (/** @type {string} */ status, /** @type {any} */ words) => html`
    <a key=${status} class="button toggle" role="button" aria-pressed=${asked === status} href=${withQuery({ items: status })}>
      ${words}
    </a>`;
  const t = page ? now.value - Date.parse(page.since) : 0;
  const rows = !page ? [] : longest ? byLength(page.items, t) : page.items;
  return html`
    <div class="filters inner" role="group" aria-label="Items by status">
      ${toggle('all', 'All')}
      ${statuses.filter((s) => counts[s] || s === wanted).map((s) => toggle(s, html`
        <span class=${look(s).tone}>${statusShape(s)}</span>
        ${look(s).word} <span class="num">${number(counts[s] || 0)}</span>`))}
      <a class="button toggle" role="button" aria-pressed=${longest} href=${withQuery({ longest: longest ? undefined : 'true' })}>
        Longest first
      </a>
    </div>
    ${error ? trouble(error) : null}
    ${!page
      ? (error ? null : loading())
      : rows.length === 0 ? empty('Nothing matches', html`<p>No item has this status.</p>`)
      : paged(rows, (shown) => html`
        <div class="scroll">
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">${task.repeat ? 'Round' : 'Item'}</th>
                <th scope="col">Status</th>
                <th scope="col" class="right">Attempt</th>
                <th scope="col" class="right">Waited</th>
                <th scope="col" class="right">Ran</th>
              </tr>
            </thead>
            <tbody>
              ${shown.map((i) => html`
                <tr key=${i.id}>
                  <td class="num"><a class="open-row" href=${`executions/${i.id}`}>${number(i.index + (task.repeat ? 1 : 0))}</a></td>
                  <td>${statusPill({ status: i.status })}</td>
                  <td class="right num">${i.attempt}</td>
                  <td class="right num nowrap">${duration((i.started_ms ?? i.finished_ms ?? t) - i.created_ms)}</td>
                  <td class="right num nowrap">${Number.isNaN(ran(i, t)) ? '–' : duration(ran(i, t))}</td>
                </tr>`)}
            </tbody>
          </table>
        </div>`, `${wanted} ${longest}`)}
    ${page?.next_cursor ? html`
      <p class="muted small">Here are the first ${count(page.items.length, 'item')} in their order: there are more.</p>` : null}`;
}

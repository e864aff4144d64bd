// A filter of the tasks of a workflow, or of attempts at them, by status and name. It is in the address.
import { html, h } from '../vendor/preact.js';
import { route, go, withQuery } from '../app/router.js';
import { line, number, count } from '../app/text.js';
import { FilterField } from './filterfield.js';
import { look, statuses, statusShape } from './status.js';

const order = ['pending', ...statuses, 'skipped'];
const few = 5; // tasks that need no filter

/** @typedef {{name: string, status?: string}} Task */

/** Whether a task has one of some statuses, and a name with a text in it, in whatever case. @param {Task} t @param {string[]} chosen @param {string} name */
export const matches = (t, chosen, name) => (chosen.length === 0 || chosen.includes(t.status || '')) && t.name.toLowerCase().includes(name.toLowerCase());

/**
 * The filter in the address, and the fields that change it. match is undefined without a filter.
 * @template {Task} T
 * @param {T[]} tasks
 * @param {string} [noun] what they are
 * @returns {{match?: (t: Task) => boolean, found: T[], fields: any}}
 */
export function taskFilter(tasks, noun = 'task') {
  const q = route.value.query;
  const [name, chosen] = [q.get('name') || '', q.getAll('status')];
  const on = name !== '' || chosen.length > 0;
  if (!on && tasks.length <= few) return { found: tasks, fields: null };
  const match = (/** @type {Task} */ t) => matches(t, chosen, name);
  const found = on ? tasks.filter(match) : tasks;
  const set = (/** @type {Record<string, string|string[]|undefined>} */ change) => go(withQuery(change), { replace: true });
  /** @type {Map<string, number>} */
  const n = new Map(chosen.map((s) => [s, 0]));
  for (const t of tasks) if (t.status) n.set(t.status, (n.get(t.status) || 0) + 1);
  const shown = [...n].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  return {
    match: on ? match : undefined, found,
    fields: html`
      <div class="filters inner" role="search" aria-label="Filter tasks">
      ${shown.length > 0 ? html`
      <div class="toggles" role="group" aria-label="Status">
      ${shown.map(([s, k]) => html`
      <button key=${s} type="button" class="toggle" aria-pressed=${chosen.includes(s)}
          onClick=${() => set({ status: chosen.includes(s) ? chosen.filter((o) => o !== s) : [...chosen, s] })}>
      <span class=${look(s).tone}>${statusShape(s)}</span>
      ${line(look(s).word, 40)} <span class="num">${number(k)}</span></button>`)}</div>` : null}
      ${h(FilterField, { label: 'Name of a task', placeholder: 'Name', first: true, value: name, set: (text) => set({ name: text }) })}
      <span class="muted small num" role="status">${on ? `${number(found.length)} of ${count(tasks.length, noun)}` : ''}</span>
      ${on
        ? html`<button type="button" class="plain" onClick=${() => set({ status: undefined, name: undefined })}>Clear</button>`
        : null}</div>`,
  };
}

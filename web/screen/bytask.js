// The timeline of a workflow by its tasks.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { route, withQuery } from '../app/router.js';
import { timeline, timelineView } from '../part/timeline.js';
import { open } from '../part/status.js';
import { now, empty, loading, trouble } from '../part/kit.js';
import { useItems } from './taskitems.js';

/** @typedef {import('../types').Task} Task */
/** @typedef {import('../types').TaskItems} TaskItems */

const wholeAtMost = 5; // tasks of which all executions are asked for

/** All executions of one task, told to whoever draws them. @param {{id: string, task: Task, told: (name: string, page: TaskItems) => void}} p id: of the workflow */
function Whole({ id, task, told }) {
  const { page, error } = useItems({ id, task, wanted: '' });
  useEffect(() => { if (page) told(task.name, page); }, [page]);
  return error ? trouble(error) : page ? null : loading();
}

/** @param {{id: string, tasks: Task[], match: ((t: Task) => boolean)|undefined, chosen: string, then: number}} p id: of the workflow; match: which tasks a filter selects, where there is one; then: the moment that is shown, or 0 */
export function ByTask({ id, tasks, match, chosen, then }) {
  const [whole, set] = useState(/** @type {Map<string, TaskItems>} */ (new Map()));
  const { rows, length } = timeline(tasks, tasks.some((t) => open(t.status)) ? then || now.value : 0, match, route.value.query.getAll('status'), then ? undefined : whole);
  const told = (/** @type {string} */ name, /** @type {TaskItems} */ page) => set((all) => new Map(all).set(name, page));
  return html`
    ${then ? null : tasks.filter((t) => t.more).slice(0, wholeAtMost).map((t) => h(Whole, { key: t.name, id, task: t, told }))}
    ${rows.length === 0 && match
      ? empty('Nothing matches', html`<p>No task that has begun has all of these.</p>`)
      : rows.length === 0 ? empty('Nothing has begun', html`<p>A bar is drawn for each execution once it is created.</p>`)
      : timelineView({ rows, length, selected: chosen, href: (n) => withQuery({ task: n }) })}`;
}

// The timeline of a workflow by its tasks.
import { html } from '../vendor/preact.js';
import { route, withQuery } from '../app/router.js';
import { timeline, timelineView } from '../part/timeline.js';
import { open } from '../part/status.js';
import { now, empty } from '../part/kit.js';

/** @typedef {import('../types').Task} Task */

/** @param {{tasks: Task[], match: ((t: Task) => boolean)|undefined, chosen: string, then: number}} p match: which tasks a filter selects, where there is one; then: the moment that is shown, or 0 */
export function ByTask({ tasks, match, chosen, then }) {
  const { rows, length } = timeline(tasks, tasks.some((t) => open(t.status)) ? then || now.value : 0, match, route.value.query.getAll('status'));
  return rows.length === 0 && match ? empty('Nothing matches', html`<p>No task that has begun has all of these.</p>`) : rows.length === 0 ? empty('Nothing has begun', html`<p>A bar is drawn for each execution once it is created.</p>`) : timelineView({ rows, length, selected: chosen, href: (n) => withQuery({ task: n }) });
}

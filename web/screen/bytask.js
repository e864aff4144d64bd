// The timeline of a workflow by its tasks.
import { html } from '../vendor/preact.js';
import { withQuery } from '../app/router.js';
import { timeline, timelineView } from '../part/timeline.js';
import { open } from '../part/status.js';
import { now, empty } from '../part/kit.js';

/** @typedef {import('../types').Task} Task */

/** @param {{tasks: Task[], chosen: string, then: number}} p then: the moment that is shown, or 0 */
export function ByTask({ tasks, chosen, then }) {
  const { rows, length } = timeline(tasks, tasks.some((t) => open(t.status)) ? then || now.value : 0);
  return rows.length === 0 ? empty('Nothing has begun', html`<p>A bar is drawn for each execution once it is created.</p>`) : timelineView({ rows, length, selected: chosen, href: (n) => withQuery({ task: n }) });
}

// The order of the executions of a task.

/** @typedef {import('../types').TaskItem} Item */

/** How long it ran, or runs; NaN before it began. @param {Item} i @param {number} t ms since the workflow was created */
export const ran = (i, t) => (i.started_ms === undefined ? NaN : (i.finished_ms ?? t) - i.started_ms);

/** The longest first; those that have not begun last. @param {Item[]} all @param {number} t */
export function byLength(all, t) {
  const length = (/** @type {Item} */ i) => (i.started_ms === undefined ? -1 : ran(i, t));
  return [...all].sort((a, b) => length(b) - length(a) || a.index - b.index);
}

// The executions of a task: their order, and their layout in a grid.

/** @typedef {import('../types').TaskItem} Item */

/** How long it ran, or runs; NaN before it began. @param {Item} i @param {number} t ms since the workflow was created */
export const ran = (i, t) => (i.started_ms === undefined ? NaN : (i.finished_ms ?? t) - i.started_ms);

/** The longest first; those that have not begun last. @param {Item[]} all @param {number} t */
export function byLength(all, t) {
  const length = (/** @type {Item} */ i) => (i.started_ms === undefined ? -1 : ran(i, t));
  return [...all].sort((a, b) => length(b) - length(a) || a.index - b.index);
}

/** By the index: nothing where an item has no execution yet. @param {Item[]} all @returns {(Item|undefined)[]} */
export function places(all) {
  const at = [];
  for (const i of all) at[i.index] = i;
  return at;
}

/** The cell to which a key leads in a grid; -1 for none. @param {string} key @param {number} from @param {number} cols @param {number} total */
export function stepTo(key, from, cols, total) {
  const rows = 10; // of a page
  /** @type {Record<string, number>} */
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -cols, ArrowDown: cols, PageUp: -cols * rows, PageDown: cols * rows };
  if (key === 'Home') return 0;
  if (key === 'End') return total - 1;
  if (!Object.hasOwn(by, key)) return -1;
  if (key.startsWith('Page')) return Math.max(0, Math.min(total - 1, from + by[key]));
  const to = from + by[key];
  return to >= 0 && to < total ? to : from;
}

const ill = new Set(['failed', 'timed_out', 'cancelled']);

/** The next item that did not complete, after the last of them the first; -1 for none. @param {(Item|undefined)[]} at @param {number} from */
export function nextIll(at, from) {
  const bad = (/** @type {Item|undefined} */ i) => !!i && ill.has(i.status);
  const later = at.findIndex((i, n) => n > from && bad(i));
  return later >= 0 ? later : at.findIndex(bad);
}

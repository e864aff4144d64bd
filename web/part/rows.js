// The rows of the open list of executions: new data is merged into the shown rows.
import { statuses, firstEnd } from './status.js';

/** @typedef {import('../types').Execution} Execution */
/** @typedef {{address: string, rows: Execution[], newer: Execution[], cursor: string, searched: string, fresh: Set<string>, error: unknown, known: boolean}} State newer: what waits to be shown; known: false until there is an answer */
/** @typedef {{address: string, rows: Execution[], cursor: string, searched: string}} Page */

export const most = 2000; // rows kept in memory

/** @type {State} */
export const nothing = { address: '', rows: [], newer: [], cursor: '', searched: '', fresh: new Set(), error: null, known: false };

const rank = (/** @type {Execution} */ x) => Math.min(statuses.indexOf(x.status), firstEnd);

/** Whether b is not from before a: an execution only moves forward. @param {Execution} a @param {Execution} b */
export const later = (a, b) => b.attempt > a.attempt || (b.attempt === a.attempt && rank(b) >= rank(a));

/** @param {Page} p @returns {State} */
const anew = (p) => ({ ...nothing, ...p, known: true });

/**
 * The rows after the newest page was loaded.
 * @param {State} s as it is now: it may have changed since the look began
 * @param {Page} page
 * @param {{asked: Execution[], found: Execution[]}} again rows that the page does not have and that were asked for by their ids, and what there is of them
 * @param {boolean} free whether rows may move
 * @param {number} pageSize
 * @returns {State}
 */
export function looked(s, page, again, free, pageSize) {
  if (s.address !== page.address || !s.known) return anew(page);
  const shown = new Set(s.rows.map((x) => x.id));
  const newer = page.rows.filter((x) => !shown.has(x.id));
  // A whole page of new rows says nothing about how many more there are between them and the rows shown: the list starts anew.
  if (free && newer.length >= pageSize) return anew(page);
  const now = new Map([...page.rows, ...again.found].map((x) => [x.id, x]));
  const gone = new Set(again.asked.map((x) => x.id).filter((id) => !now.has(id)));
  const rows = s.rows.filter((x) => !gone.has(x.id)).map((x) => {
    const y = now.get(x.id);
    return y && later(x, y) ? y : x;
  });
  return free ? { ...s, error: null, rows: [...newer, ...rows].slice(0, most), newer: [], fresh: new Set(newer.map((x) => x.id)) } : { ...s, error: null, rows, newer };
}

/** The state after the page at a cursor has arrived; unchanged if something else is shown by then. @param {State} s @param {Page} page @param {string} cursor @returns {State} */
export function older(s, page, cursor) {
  if (s.address !== page.address || s.cursor !== cursor) return s;
  const known = new Set(s.rows.map((x) => x.id));
  const rows = [...s.rows, ...page.rows.filter((x) => !known.has(x.id))].slice(0, most);
  return { ...s, rows, cursor: s.rows.length < most ? page.cursor : '', searched: page.searched };
}

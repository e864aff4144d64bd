// The executions that wait in a line, and the holders.
import { line, number } from '../app/text.js';
import { open } from './status.js';
import { placesText } from './mine.js';

/** @typedef {import('../types').Lane} Lane */
/** @typedef {import('../types').Standing} Standing */
/** @typedef {import('../types').Execution} Execution */

/** The key that distinguishes a queue's lines. @param {Lane} l */
const whose = (l) => JSON.stringify([l.paused_action || '', l.handler || '', l.runtime || '', Object.entries(l.worker_labels || {}).sort()]);

/** Those of a line that are yours. They come in an answer of their own, which may have other lines by then. @param {Lane} l @param {Lane[]|undefined} yours @returns {Standing[]} */
export const yoursIn = (l, yours) => (yours || []).find((y) => whose(y) === whose(l))?.line || [];

/** The places of your executions, in words; '' for none. @param {Standing[]} yours @param {number} total */
export const placesOf = (yours, total) => (yours.length > 0 ? `${placesText(yours.map((s) => s.place))} of ${number(total)}` : '');

/** The number of executions after the shown ones. @param {Standing[]} rows @param {number} total */
export const behind = (rows, total) => Math.max(0, total - (rows.at(-1)?.place || 0));

/** Which worker has what holds a key: its name; the engine where that runs it itself; '' where it waits for one. @param {import('../types').Execution} x @param {Map<string, string>} names of workers by session */
export const heldBy = (x, names) => (x.worker ? line(names.get(x.worker) || x.worker, 120) : open(x.status) && x.status !== 'scheduled' ? 'the engine' : '');

/** How many of a line would get their key now if all had another limit. @param {number} limit @param {number} held @param {number} waiting */
export const wouldGo = (limit, held, waiting) => Math.max(0, Math.min(limit - held, waiting));

/** When an attempt has become due. @param {Execution} x */
const came = (x) => Date.parse(x.queued_at || x.created_at || '');

/**
 * Who have passed each row of a line: those before it or with its key that came later with a higher priority. By id; rows that none has passed are left out.
 * @param {Standing[]} rows from the head of the line on
 * @param {Execution[]} holders
 */
export function passed(rows, holders) {
  /** @type {Map<string, Execution[]>} */
  const all = new Map();
  const before = [...holders];
  for (const { execution: x } of rows) {
    const by = before.filter((y) => (y.priority || 0) > (x.priority || 0) && came(y) > came(x));
    if (by.length > 0) all.set(x.id, by);
    before.push(x);
  }
  return all;
}

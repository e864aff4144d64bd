// Who stands in a line, and who holds what the line is for.
import { line, number } from '../app/text.js';
import { open } from './status.js';
import { placesText } from './mine.js';

/** @typedef {import('../types').Lane} Lane */
/** @typedef {import('../types').Standing} Standing */

/** What tells a line of a queue from its others. @param {Lane} l */
const whose = (l) => JSON.stringify([l.paused_action || '', l.handler || '', l.runtime || '', Object.entries(l.worker_labels || {}).sort()]);

/** Those of a line that are yours. They come in an answer of their own, which may have other lines by then. @param {Lane} l @param {Lane[]|undefined} yours @returns {Standing[]} */
export const yoursIn = (l, yours) => (yours || []).find((y) => whose(y) === whose(l))?.line || [];

/** Where yours stand, in words; '' where none does. @param {Standing[]} yours @param {number} total */
export const placesOf = (yours, total) => (yours.length > 0 ? `${placesText(yours.map((s) => s.place))} of ${number(total)}` : '');

/** How many stand behind those that are shown. @param {Standing[]} rows @param {number} total */
export const behind = (rows, total) => Math.max(0, total - (rows.at(-1)?.place || 0));

/** Which worker has what holds a key: its name; the engine where that runs it itself; '' where it waits for one. @param {import('../types').Execution} x @param {Map<string, string>} names of workers by session */
export const heldBy = (x, names) => (x.worker ? line(names.get(x.worker) || x.worker, 120) : open(x.status) && x.status !== 'scheduled' ? 'the engine' : '');

// The input of a run of code, as the form of a program holds it.
import { caseAt } from './caseat.js';
import { elements, members } from './members.js';

/** @typedef {{language: string, source: string, stdin: string, interactive: boolean, wall: string, memory: string, labels: string, cases: import('./casefiles.js').Case[]}} Program */

/** @type {Program} */
export const blank = { language: 'python', source: '', stdin: '', interactive: false, wall: '', memory: '', labels: '', cases: [] };

/** @param {any} o @param {string[]} names */
const only = (o, names) => !!o && typeof o === 'object' && Object.keys(o).every((k) => names.includes(k));

/**
 * An input of code in the form's fields; null if it has more than the form shows.
 * @param {any} v
 * @returns {Program|null}
 */
export function programOf(v) {
  const text = (/** @type {any} */ c) => (c === undefined ? '' : typeof c === 'string' ? c : only(c, ['text']) && typeof c.text === 'string' ? c.text : null);
  if (!only(v, ['language', 'source', 'stdin', 'interactive', 'limits', 'cases']) || typeof v.source !== 'string' || !only(v.limits || {}, ['wall', 'memory'])) return null;
  const cases = (v.cases || []).map((/** @type {any} */ c, /** @type {number} */ i) => (only(c, ['name', 'stdin', 'expect']) ? { ...(c.name === undefined || c.name === String(i + 1) ? {} : { name: String(c.name) }), stdin: text(c.stdin), expect: text(c.expect) } : null));
  const stdin = text(v.stdin);
  if (stdin === null || cases.some((/** @type {any} */ c) => c === null || c.stdin === null || c.expect === null)) return null;
  return { ...blank, language: String(v.language), source: v.source, stdin, interactive: v.interactive === true, cases, wall: String(v.limits?.wall ?? ''), memory: String(v.limits?.memory ?? '') };
}

/**
 * The text of an input of code with one of its cases alone, by its name, as it was written: JSON.parse would round long numbers among the
 * arguments of calls. Empty without a case of that name.
 * @param {string} raw @param {string} name
 */
export function caseAlone(raw, name) {
  const input = members(raw);
  const cases = elements(input.cases || '');
  const c = cases[caseAt(cases.map((text) => JSON.parse(text)), name)];
  if (c === undefined) return '';
  return written({ ...input, cases: `[${written({ ...members(c), name: JSON.stringify(name) })}]` });
}

/** An object of members that are texts of JSON. @param {Record<string, string>} all */
const written = (all) => `{${Object.entries(all).map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(', ')}}`;

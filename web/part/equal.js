// Columns of a matrix that are equal in every row, as one.
import { line, count } from '../app/text.js';
import { says } from './grid.js';

/** @typedef {import('./matrix.js').Cell} Cell */
/** @typedef {{now: Map<string, Cell>, before?: Map<string, Cell>}} Cells of a row */
/** @typedef {{word: string, title: string}} Group word: how many there are, and what they have in common; title: their names */
/** @typedef {(rows: Cells[], cols: string[], keep: string[], noun: string) => {cols: string[], groups: Map<string, Group>}} Folding */

const fewest = 4; // equal columns that are folded
const mostLooks = 1 << 14; // of cells that are told apart: two of their numbers and that of a group are one number, which is exact for 33 million groups

/** @param {Cells[]} rows @param {string[]} cols @param {string} noun */
function common(rows, cols, noun) {
  const cells = rows.map((r) => r.now.get(cols[0]));
  const all = count(cols.length, noun);
  if (cells.every((c) => c && c.passed === c.n)) return `${all} that all pass`;
  const words = new Set(cells.map(says));
  return words.size > 1 ? `${all} alike` : `${all}: ${line([...words][0], 24)}`;
}

/**
 * The columns, with each group of equal ones as one, in the place of its first. Each row splits the groups of the rows before it by
 * what its own cells show: of rows times columns, most may be empty.
 * @param {Cells[]} rows @param {string[]} cols
 * @param {string[]} keep columns whose groups stay unfolded
 * @param {string} noun what a column is
 * @returns {{cols: string[], groups: Map<string, Group>}} groups: by their first column
 */
export function foldedColumns(rows, cols, keep, noun) {
  const places = new Map(cols.map((c, i) => [c, i]));
  const at = cols.map(() => 0); // the group that each column is in
  /** @type {Map<string, number>} */
  const looks = new Map(); // content of cells, without the executions' identity
  const look = (/** @type {Cell|undefined} */ c) => {
    if (!c) return 0;
    const text = c.n === 1 ? c.verdict : `${c.n} ${c.passed} ${c.open}\n${c.verdict}`;
    const n = looks.get(text) || looks.size + 1;
    if (n > looks.size) looks.set(text, n);
    return n;
  };
  let last = 0;
  for (const r of rows) {
    /** @type {Map<number, number>} */
    const parts = new Map(); // parts of the groups, by the row's content there
    const divide = (/** @type {string} */ c, /** @type {Cell|undefined} */ now, /** @type {Cell|undefined} */ before) => {
      const place = places.get(c);
      if (place === undefined) return;
      const part = (at[place] * mostLooks + look(now)) * mostLooks + look(before);
      const group = parts.get(part) || ++last;
      parts.set(part, group);
      at[place] = group;
    };
    r.now.forEach((cell, c) => divide(c, cell, r.before?.get(c)));
    r.before?.forEach((cell, c) => { if (!r.now.has(c)) divide(c, undefined, cell); });
  }
  if (looks.size >= mostLooks) return { cols, groups: new Map() };
  /** @type {Map<number, string[]>} */
  const equal = new Map();
  cols.forEach((c, i) => equal.set(at[i], equal.get(at[i]) || []).get(at[i])?.push(c));
  const folded = [...equal.values()].filter((g) => g.length >= fewest && !g.some((c) => keep.includes(c)));
  const gone = new Set(folded.flatMap((g) => g.slice(1)));
  return { cols: cols.filter((c) => !gone.has(c)), groups: new Map(folded.map((g) => [g[0], { word: common(rows, g, noun), title: `${g.slice(0, 20).map((c) => line(c, 40)).join(', ')}${g.length > 20 ? ' …' : ''}` }])) };
}

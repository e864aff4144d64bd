// Many executions as a matrix: rows by one dimension, columns by another, and in each cell how many there are and how many passed.
// A cell of a comparison has the same of another batch.
import { open } from './status.js';
import { casesOf } from './cells.js';

/** @typedef {import('../types').Execution} Execution */
/** @typedef {{n: number, passed: number, open: number, verdict: string, id: string}} Cell verdict and id: of the one, or of the first that did not pass */
/** @typedef {{key: string, title: string, ids: string[], labels: Record<string, string>, status: string, verdict: string, wall: number, passed: number, total: number, cells: Map<string, Cell>}} Row */
/** @typedef {{rows: Row[], cols: string[]}} Matrix */
/** @typedef {'better'|'worse'|'other'|'same'|'new'|'gone'} Flip */

/** Whether more may come of a batch: something in it has not ended, or its submission has not begun. @param {Execution[]} all */
export const growing = (all) => all.length === 0 || all.some((x) => open(x.status));

/** The column of executions without cases, or not split by case. */
export const outcome = 'Outcome';

/** Columns that are shown and written at most: rows may be 5,000, and every row has all columns there. */
export const mostCols = 2000;

/** The name of a label dimension in the address. @param {string} name */
export const byLabel = (name) => `label:${name}`;

/** @param {Execution} x @param {string} without a label that all of the batch have */
function ownTitle(x, without) {
  if (x.workflow) return `${x.task}[${x.index || 0}]`;
  const rest = Object.entries(x.labels || {}).filter(([k]) => k !== without).sort(([a], [b]) => (a < b ? -1 : 1));
  const name = x.action + (x.version ? `@${x.version}` : '');
  return rest.length === 0 ? name : rest.map(([k, v]) => `${k}=${v}`).join(' ');
}

/** @param {Execution} x @param {string} name */
const labelOf = (x, name) => (x.labels && Object.hasOwn(x.labels, name) ? x.labels[name] : '');

/** @param {Execution} x @param {string} dimension @param {string} without */
function rowKey(x, dimension, without) {
  if (dimension.startsWith('label:')) return labelOf(x, dimension.slice(6));
  if (dimension === 'action') return x.action + (x.version ? `@${x.version}` : '');
  if (dimension === 'task') return x.task || '';
  return ownTitle(x, without);
}

/** @type {import('./cells.js').Names} */
const none = new Map();

const ended = new Set(['completed', 'failed', 'cancelled', 'timed_out']);

/** How an execution ended as a whole; '' while it has not. @param {Execution} x */
const verdictOf = (x) => (!ended.has(x.status) ? '' : x.verdict || (x.status === 'completed' ? 'ok' : x.error?.code || x.status));

/** @param {Map<string, Cell>} cells @param {string} col @param {string} verdict @param {string} id */
function put(cells, col, verdict, id) {
  const c = cells.get(col);
  if (!c) {
    cells.set(col, { n: 1, passed: verdict === 'ok' ? 1 : 0, open: verdict === '' ? 1 : 0, verdict, id });
    return;
  }
  if (c.passed + c.open === c.n && verdict !== 'ok' && verdict !== '') [c.verdict, c.id] = [verdict, id];
  c.n++;
  if (verdict === 'ok') c.passed++;
  if (verdict === '') c.open++;
}

/**
 * @param {Execution[]} all newest first, as the server lists them
 * @param {{rows: string, cols: string, without?: string, names?: import('./cells.js').Names}} by dimensions: execution, action, task or label:NAME of rows; case, outcome or label:NAME of columns; names of cases
 * @returns {Matrix}
 */
export function matrix(all, by) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  /** @type {Set<string>} */
  const cols = new Set();
  /** @type {Map<string, number>} */
  const times = new Map(); // number of uses of a title: equal ones are numbered in the order of creation
  const single = by.rows === 'execution';
  for (const x of [...all].reverse()) {
    let key = rowKey(x, by.rows, by.without || '');
    const title = key;
    if (single) {
      const n = (times.get(key) || 0) + 1;
      times.set(key, n);
      if (n > 1) key += ` #${n}`;
    }
    let row = rows.get(key);
    if (!row) rows.set(key, row = { key, title: single ? key : title, ids: [], labels: single ? x.labels || {} : {}, status: x.status, verdict: verdictOf(x), wall: 0, passed: 0, total: 0, cells: new Map() });
    row.ids.push(x.id);
    row.wall += x.wall_ms || 0;
    const cases = by.cols === 'case' ? casesOf(x, by.names || none) : [];
    const whole = verdictOf(x);
    /** @type {[string, string][]} */
    const parts = cases.length > 0 ? cases : [[by.cols.startsWith('label:') ? labelOf(x, by.cols.slice(6)) : outcome, whole]];
    for (const [col, verdict] of parts) {
      cols.add(col);
      put(row.cells, col, verdict, x.id);
      row.total++;
      if (verdict === 'ok') row.passed++;
    }
  }
  const order = [...cols];
  if (by.cols !== 'case') order.sort(natural);
  else if (order.includes(outcome)) order.splice(0, 0, ...order.splice(order.indexOf(outcome), 1));
  return { rows: [...rows.values()], cols: order };
}

const collator = new Intl.Collator('en', { numeric: true });

/** Numbers in texts by their size. @param {string} a @param {string} b */
export const natural = (a, b) => collator.compare(a, b);

/** The change of a cell from before to now. @param {Cell|undefined} before @param {Cell|undefined} now @returns {Flip} */
export function flip(before, now) {
  if (!before) return now ? 'new' : 'same';
  if (!now) return 'gone';
  if (before.open || now.open) return 'same';
  const [a, b] = [before.passed / before.n, now.passed / now.n];
  if (a !== b) return b > a ? 'better' : 'worse';
  return before.n === 1 && now.n === 1 && before.verdict !== now.verdict ? 'other' : 'same';
}

/** The columns in which a row has a cell, now or before. @param {Map<string, Cell>|undefined} now @param {Map<string, Cell>|undefined} before */
const columnsOf = (now, before) => new Set([...(now ? now.keys() : []), ...(before ? before.keys() : [])]);

/**
 * The rows and columns in which a cell is kept. Each row's own cells are looked at: of rows times columns, most may be empty.
 * @template {{now: Map<string, Cell>, before?: Map<string, Cell>}} R
 * @param {R[]} rows @param {string[]} cols @param {(now: Cell|undefined, before: Cell|undefined) => boolean} keep
 * @returns {{rows: R[], cols: string[]}}
 */
export function keeping(rows, cols, keep) {
  const found = new Set();
  const left = rows.filter((r) => {
    let any = false;
    for (const c of columnsOf(r.now, r.before)) {
      if (!keep(r.now.get(c), r.before?.get(c))) continue;
      found.add(c);
      any = true;
    }
    return any;
  });
  return { rows: left, cols: cols.filter((c) => found.has(c)) };
}

/**
 * Rows and columns of both, those of now first.
 * @param {Matrix} now @param {Matrix} before
 * @returns {{cols: string[], rows: {now: Row|undefined, before: Row|undefined, key: string}[], count: Record<Flip, number>}}
 */
export function paired(now, before) {
  const old = new Map(before.rows.map((r) => [r.key, r]));
  const here = new Set(now.rows.map((r) => r.key));
  /** @type {{now: Row|undefined, before: Row|undefined, key: string}[]} */
  const rows = now.rows.map((r) => ({ key: r.key, now: r, before: old.get(r.key) }));
  for (const r of before.rows) if (!here.has(r.key)) rows.push({ key: r.key, now: undefined, before: r });
  const cols = [...new Set([...now.cols, ...before.cols])];
  const count = { better: 0, worse: 0, other: 0, same: 0, new: 0, gone: 0 };
  for (const r of rows) for (const c of columnsOf(r.now?.cells, r.before?.cells)) count[flip(r.before?.cells.get(c), r.now?.cells.get(c))]++;
  return { rows, cols, count };
}

/** A cell of a table that other programs read: quoted, and never a formula. @param {string|number} v */
const csvCell = (v) => {
  const s = String(v);
  return `"${(/^[=+\-@\t\r\n＝＋－＠]/.test(s) ? `'${s}` : s).replaceAll('"', '""')}"`;
};

/** The text of a cell. @param {Cell|undefined} at */
const csvText = (at) => (!at ? '' : at.n === 1 ? at.verdict || 'open' : `${at.passed} of ${at.n}`);

/** A matrix for other programs; columns beyond the most are counted in a last one. @param {Matrix} m @returns {string} */
export function csv(m) {
  const cols = m.cols.slice(0, mostCols);
  const cut = m.cols.length > cols.length ? [`${m.cols.length - cols.length} more columns are left out`] : [];
  const rows = m.rows.map((r) => [r.title, r.passed, r.total, ...cols.map((c) => csvText(r.cells.get(c))), ...cut.map(() => '')]);
  return [['', 'passed', 'of', ...cols, ...cut], ...rows].map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n';
}

const mapWidth = 900; // pixels of the map of a matrix
const mapHeight = 240;

/**
 * How the map of a matrix is laid out: in bands of rows side by side, with cells as large as fit. In one band 10,000 rows of one column are a line that is a pixel wide.
 * @param {number} rows @param {number} cols
 * @returns {{size: number, rows: number, bands: number}} size: of a cell in pixels; rows: of one band
 */
export function bandsOf(rows, cols) {
  for (let size = 8; size > 0; size--) {
    const high = Math.max(1, Math.min(rows, Math.floor(mapHeight / size)));
    const bands = Math.ceil(rows / high) || 1;
    if (bands * cols * size <= mapWidth) return { size, rows: high, bands };
  }
  return { size: 1, rows: Math.max(1, rows), bands: 1 };
}

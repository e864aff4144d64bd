// The changes between two texts: lines first, then the words in lines that correspond.

/** @typedef {{op: ' '|'-'|'+', text: string, a: number, b: number}} Change a line with its numbers on either side, from 1; 0 where it is not */

const mostEdits = 1000; // beyond that the texts have too little in common for a comparison line by line

/**
 * The shortest edit script from a to b (Myers), as runs of kept, removed and added lines. Null if it needs more than most edits.
 * @param {string[]} a @param {string[]} b @param {number} most
 * @returns {{op: ' '|'-'|'+', i: number, j: number}[]|null}
 */
function script(a, b, most) {
  const n = a.length;
  const m = b.length;
  const bound = Math.min(most, n + m);
  /** @type {Int32Array[]} */
  const trace = []; // of each number of edits: how far each diagonal reached with one edit less
  let v = new Int32Array(3);
  for (let d = 0; d <= bound; d++) {
    const next = new Int32Array(2 * d + 3);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && v[k - 1 + d] < v[k + 1 + d]);
      let x = d === 0 ? 0 : down ? v[k + 1 + d] : v[k - 1 + d] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      next[k + d + 1] = x;
      if (x >= n && x - k >= m) {
        trace.push(v);
        return back(trace, n, m, d);
      }
    }
    trace.push(v);
    v = next;
  }
  return null;
}

/** Walks the trace from the end to the beginning. @param {Int32Array[]} trace @param {number} x @param {number} y @param {number} edits */
function back(trace, x, y, edits) {
  /** @type {{op: ' '|'-'|'+', i: number, j: number}[]} */
  const out = [];
  for (let d = edits; d > 0; d--) {
    const v = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && v[k - 1 + d] < v[k + 1 + d]);
    const from = down ? v[k + 1 + d] : v[k - 1 + d];
    const before = down ? k + 1 : k - 1;
    while (x > (down ? from : from + 1)) out.push({ op: ' ', i: --x, j: --y });
    if (down) out.push({ op: '+', i: x, j: --y });
    else out.push({ op: '-', i: --x, j: y });
    x = from;
    y = from - before;
  }
  while (x > 0) out.push({ op: ' ', i: --x, j: --y });
  return out.reverse();
}

/**
 * All lines of both texts, each as kept, removed or added.
 * @param {string[]} a @param {string[]} b
 * @returns {Change[]}
 */
export function changes(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const midA = a.slice(head, a.length - tail);
  const midB = b.slice(head, b.length - tail);
  /** @type {Change[]} */
  const out = a.slice(0, head).map((text, i) => ({ op: ' ', text, a: i + 1, b: i + 1 }));
  const steps = script(midA, midB, mostEdits)
    || [...midA.map((_, i) => ({ op: /** @type {const} */ ('-'), i, j: 0 })), ...midB.map((_, j) => ({ op: /** @type {const} */ ('+'), i: midA.length, j }))];
  for (const s of steps) {
    out.push({ op: s.op, text: s.op === '+' ? midB[s.j] : midA[s.i], a: s.op === '+' ? 0 : head + s.i + 1, b: s.op === '-' ? 0 : head + s.j + 1 });
  }
  for (let i = 0; i < tail; i++) out.push({ op: ' ', text: a[a.length - tail + i], a: a.length - tail + i + 1, b: b.length - tail + i + 1 });
  return out;
}

/**
 * Changed lines with some lines around them, in runs. Lines between two runs are left out.
 * @param {Change[]} all @param {number} around
 * @returns {{from: number, rows: Change[]}[]} from: the index of the first row
 */
export function hunks(all, around) {
  /** @type {{from: number, rows: Change[]}[]} */
  const out = [];
  let begin = 0; // of the current run
  let end = -1; // of it; -1 before the first
  all.forEach((c, i) => {
    if (c.op === ' ') return;
    const from = Math.max(0, i - around);
    if (from > end) {
      if (end >= 0) out.push({ from: begin, rows: all.slice(begin, end) });
      begin = from;
    }
    end = Math.min(all.length, i + 1 + around);
  });
  if (end >= 0) out.push({ from: begin, rows: all.slice(begin, end) });
  return out;
}

const longest = 2000; // characters of a line whose words are compared

/** @param {string} s */
const words = (s) => s.match(/[\p{L}\p{N}_]+|\s|[^\p{L}\p{N}_\s]/gu) || [];

/**
 * The pieces of two corresponding lines, each with whether it is only in that line.
 * @param {string} a @param {string} b
 * @returns {{a: {text: string, only: boolean}[], b: {text: string, only: boolean}[]}|null} null where they have too little in common
 */
export function wordsOf(a, b) {
  if (a.length > longest || b.length > longest) return null;
  const [u, v] = [words(a), words(b)];
  const steps = script(u, v, 200);
  if (!steps) return null;
  const kept = steps.filter((s) => s.op === ' ').reduce((n, s) => n + u[s.i].length, 0);
  if (kept * 3 < Math.max(a.length, b.length)) return null;
  const side = (/** @type {'-'|'+'} */ mine) => {
    /** @type {{text: string, only: boolean}[]} */
    const out = [];
    for (const s of steps) {
      if (s.op !== ' ' && s.op !== mine) continue;
      const text = s.op === '+' ? v[s.j] : u[s.i];
      const last = out[out.length - 1];
      if (last && last.only === (s.op === mine)) last.text += text;
      else out.push({ text, only: s.op === mine });
    }
    return out;
  };
  return { a: side('-'), b: side('+') };
}

/** Lines of a text. Text after the last line feed is a line only if it is not empty. @param {string} s */
export function linesOf(s) {
  const all = s.split('\n');
  if (all[all.length - 1] === '') all.pop();
  return all;
}

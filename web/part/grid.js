// A matrix as a table of which a window is in the document, and above it, where there is more, a map of all cells.
import { html, h, useEffect, useRef, useState } from '../vendor/preact.js';
import { line, number, count } from '../app/text.js';
import { verdictWord, verdictTone, table } from './status.js';
import { flip, bandsOf } from './matrix.js';

/** @typedef {import('./matrix.js').Cell} Cell */
/** @typedef {{key: string, title: any, name: string, sum: any, href?: string, now: Map<string, Cell>, before?: Map<string, Cell>}} GridRow */

const rowsShown = 25;
const colsShown = matchMedia('(max-width: 760px)').matches ? 6 : 20;

/** Marks of verdicts in a cell; the words are in its name. */
const marks = table({
  ok: '✓', wrong_answer: 'W', timeout: 'T', cpu_timeout: 'T', oom: 'M', nonzero_exit: 'E', signal: 'C', output_limit: 'O', killed: 'K', skipped: '–',
  compile_error: 'S', syntax_error: 'S', checker_error: '?', infra_error: 'I', cancelled: 'K', timed_out: 'T',
});

/** @param {Cell} c */
const mark = (c) => (c.n > 1 ? `${c.passed}/${c.n}` : c.open ? '…' : marks[c.verdict] || '!');

/** @param {Cell} c */
const tone = (c) => (c.open === c.n ? 'idle' : c.passed === c.n ? 'good' : c.n > 1 && c.passed > 0 ? 'late' : verdictTone(c.verdict));

/** @param {Cell|undefined} c */
export const says = (c) => (!c ? 'none' : c.n > 1 ? `${c.passed}/${c.n} passed${c.open ? `, ${c.open} open` : ''}` : c.open ? 'not ended' : verdictWord(c.verdict));

/** @type {Record<string, {mark: string, word: string}>} */
const flips = { better: { mark: '▲', word: 'better' }, worse: { mark: '▼', word: 'worse' }, other: { mark: '◆', word: 'otherwise' }, new: { mark: '+', word: 'only here' }, gone: { mark: '−', word: 'only there' } };

/** The marks that are in a matrix, with their words. @param {GridRow[]} rows @param {string[]} cols */
export function legend(rows, cols) {
  const found = new Map();
  const shown = new Set(cols);
  for (const r of rows) for (const [c, at] of r.now) {
    if (at.n === 1 && shown.has(c)) found.set(mark(at) + tone(at), { mark: mark(at), tone: tone(at), word: at.open ? 'Not ended' : verdictWord(at.verdict) });
  }
  if (found.size === 0) return null;
  return html`
    <div class="legend body">
    ${[...found.values()].map((f) => html`
    <span><b class=${`mark ${f.tone}`} aria-hidden="true">${f.mark}</b>${line(f.word, 40)}</span>`)}
    ${rows.some((r) => r.before) ? Object.values(flips).slice(0, 3).map((f) => html`
    <span><b class="mark" aria-hidden="true">${f.mark}</b>${f.word} than before</span>`) : null}</div>`;
}

const mapTones = ['good', 'bad', 'late', 'off', 'idle'];

/** @param {{rows: GridRow[], cols: string[], at: {row: number, col: number}, move: (row: number, col: number) => void}} p */
function Map_({ rows, cols, at, move }) {
  const canvas = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const { size, rows: high, bands } = bandsOf(rows.length, cols.length);
  useEffect(() => {
    const c = canvas.current;
    const g = c?.getContext('2d');
    if (!c || !g) return;
    /** @type {Record<string, string>} */
    const colours = {};
    for (const s of c.parentElement?.querySelectorAll('i') || []) colours[s.className] = getComputedStyle(s).color;
    g.clearRect(0, 0, c.width, c.height);
    const places = new Map(cols.map((name, x) => [name, x]));
    rows.forEach((r, y) => r.now.forEach((cell, name) => {
      const x = places.get(name);
      if (x === undefined) return;
      g.fillStyle = colours[tone(cell)];
      const f = r.before && flip(r.before.get(name), cell);
      const [left, top] = [Math.floor(y / high) * cols.length + x, y % high];
      const small = tone(cell) === 'good' && f !== 'better'; // passed cases are smaller, so that the others stand out
      const inset = size > 2 ? (small ? size / 4 : 0.5) : 0;
      g.globalAlpha = small ? 0.45 : 1;
      g.fillRect(left * size + inset, top * size + inset, size - 2 * inset, size - 2 * inset);
    }));
    g.globalAlpha = 1;
    g.strokeStyle = colours.run;
    g.lineWidth = 2;
    const last = Math.min(at.row + rowsShown, rows.length);
    for (let from = at.row, to; from < last; from = to) { // what is shown may end in the next band
      to = Math.min(last, (Math.floor(from / high) + 1) * high);
      g.strokeRect((Math.floor(from / high) * cols.length + at.col) * size + 1, (from % high) * size + 1, Math.max(1, Math.min(colsShown, cols.length) * size - 2), Math.max(1, (to - from) * size - 2));
    }
  });
  const click = (/** @type {any} */ e) => {
    const box = e.target.getBoundingClientRect();
    const scale = (bands * cols.length * size) / box.width;
    const x = Math.floor(((e.clientX - box.left) * scale) / size);
    const row = Math.floor(x / cols.length) * high + Math.floor(((e.clientY - box.top) * scale) / size);
    move(Math.floor(row - rowsShown / 2), Math.floor((x % cols.length) - colsShown / 2));
  };
  return html`
    <div class="map">
    <canvas ref=${canvas} width=${bands * cols.length * size} height=${high * size} role="img"
        aria-label=${`A map of ${count(rows.length, 'row')} and ${count(cols.length, 'column')}; the table below shows a part of it`}
        onClick=${click}></canvas>
    ${[...mapTones, 'run'].map((t) => html`<i class=${t}></i>`)}</div>`;
}

/** @typedef {{rows: GridRow[], cols: string[], groups: Map<string, import('./equal.js').Group>, name: string, head: string, href: (r: GridRow, col: string, cell: Cell|undefined) => string, unfold: (col: string) => void}} Shown groups: equal columns, by the first; head: what the rows are */

/** @param {Shown} p */
function Grid({ rows, cols, groups, name, head, href, unfold }) {
  const [at, set] = useState({ row: 0, col: 0 });
  const row = Math.max(0, Math.min(at.row, rows.length - rowsShown));
  const col = Math.max(0, Math.min(at.col, cols.length - colsShown));
  const move = (/** @type {number} */ r, /** @type {number} */ c) => set({ row: Math.max(0, Math.min(r, rows.length - rowsShown)), col: Math.max(0, Math.min(c, cols.length - colsShown)) });
  const part = cols.slice(col, col + colsShown);
  const turned = part.some((c) => c.length > 3 || groups.has(c));
  const large = rows.length > rowsShown || cols.length > colsShown;
  /** @param {string} what @param {number} from @param {number} size @param {number} all @param {(to: number) => void} to */
  const step = (what, from, size, all, to) => (all <= size ? null : html`
    <span class="row tight-row">
    <button type="button" class="plain" aria-label=${`Earlier ${what}`} disabled=${from === 0} onClick=${() => to(from - size)}>
    ←</button>
    <span class="muted small num">${what} ${number(from + 1)} … ${number(Math.min(from + size, all))} of ${number(all)}</span>
    <button type="button" class="plain" aria-label=${`Later ${what}`} disabled=${from + size >= all} onClick=${() => to(from + size)}>
    →</button></span>`);
  const cell = (/** @type {GridRow} */ r, /** @type {string} */ c) => {
    const now = r.now.get(c);
    const f = r.before ? flip(r.before.get(c), now) : 'same';
    const group = groups.get(c);
    const word = `${r.name}, ${group ? group.word : line(c, 80)}: ${says(now)}${f !== 'same' ? `, ${flips[f].word}${r.before?.get(c) ? `, before ${says(r.before.get(c))}` : ''}` : ''}`;
    if (!now && f === 'same') return html`<td class="none"></td>`;
    const [cls, shown] = now ? [`mark ${tone(now)}`, mark(now)] : ['mark idle', ''];
    return html`
      <td key=${c} class=${f === 'same' ? '' : `flip ${f}`}>
      ${group ? html`<span class=${cls} role="img" aria-label=${word} title=${word}>${shown}</span>` : html`
      <a class=${cls} href=${href(r, c, now)} aria-label=${word} title=${word}>${shown}</a>`}</td>`;
  };
  const heading = (/** @type {string} */ c) => {
    const group = groups.get(c);
    return html`
      <th scope="col" key=${c} class=${`of user ${turned ? 'turned' : ''}`} title=${group ? group.title : line(c, 200)}>
      ${group ? html`
      <button type="button" class="plain" aria-expanded="false" onClick=${() => unfold(c)}><span>${group.word}</span></button>`
        : html`<span class="cut">${line(c, 24)}</span>`}</th>`;
  };
  return html`
    ${large ? html`
    ${h(Map_, { rows, cols, at: { row, col }, move })}
    <div class="row body">
    ${step('Rows', row, rowsShown, rows.length, (r) => move(r, col))}
    ${step('Columns', col, colsShown, cols.length, (c) => move(row, c))}</div>` : null}
    <div class="scroll" tabindex="0" role="group" aria-label=${name}>
    <table class="grid">
    <thead>
    <tr><th scope="col">${head}</th><th scope="col" class="right">Passed</th>${part.map(heading)}<td class="rest"></td></tr></thead>
    <tbody>
    ${rows.slice(row, row + rowsShown).map((r) => html`
    <tr key=${r.key}>
    <th scope="row" class="user">
    ${r.href ? html`<a href=${r.href} title=${r.name}>${r.title}</a>` : html`<span title=${r.name}>${r.title}</span>`}</th>
    <td class="right num nowrap">${r.sum}</td>
    ${part.map((c) => cell(r, c))}
    <td class="rest"></td></tr>`)}</tbody></table></div>`;
}

/** @param {Shown} p */
export const grid = (p) => h(Grid, p);

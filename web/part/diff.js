// Two texts as one list of lines, with removed and added ones. Equal lines far from a change are left out.
import { html, h, useMemo, useState } from '../vendor/preact.js';
import { plain, number, count } from '../app/text.js';
import { changes, hunks, wordsOf, linesOf } from './changes.js';

/** @typedef {import('./changes.js').Change} Change */

const page = 200; // lines in the document
const around = 3; // lines that are shown around a change
const longest = 2000; // characters of a line that are shown
const most = 1 << 20; // characters of a text that is compared

/** Text of a changed piece, with visible white space, which may be the only difference. @param {string} s */
const seen = (s) => plain(s.replace(/\r/g, '\u240d')).replace(/ /g, '·').replace(/\t/g, '→');

/** @param {string} s */
const cut = (s) => (s.length > longest ? s.slice(0, longest) + '…' : s);

/** @typedef {{key: string, change?: Change, skipped?: number, other?: Change}} Row other: the line that stands for it in the other text */

/** The lines that are shown: runs of changes, and how many lines are left out between them. @param {Change[]} all @returns {Row[]} */
export function rowsOf(all) {
  /** @type {Row[]} */
  const out = [];
  let end = 0;
  for (const h of hunks(all, around)) {
    if (h.from > end) out.push({ key: `s${end}`, skipped: h.from - end });
    end = h.from + h.rows.length;
    h.rows.forEach((change, i) => out.push({ key: String(h.from + i), change }));
  }
  if (out.length > 0 && end < all.length) out.push({ key: `s${end}`, skipped: all.length - end });
  // Equally many removed and added lines at the same place correspond to each other.
  for (let i = 0; i < out.length;) {
    const run = (/** @type {number} */ from, /** @type {string} */ op) => { let j = from; while (out[j]?.change?.op === op) j++; return j - from; };
    const gone = run(i, '-');
    const come = run(i + gone, '+');
    if (gone > 0 && gone === come) {
      for (let j = i; j < i + gone; j++) {
        const [x, y] = [out[j], out[j + gone]];
        [x.other, y.other] = [y.change, x.change];
      }
    }
    i += Math.max(1, gone + come);
  }
  return out;
}

/** The pieces of a line with a corresponding one. Only lines in the document are split: a text may have a million. @param {Change} c @param {Change|undefined} other */
const piecesOf = (c, other) => (!other ? undefined : c.op === '-' ? wordsOf(c.text, other.text)?.a : wordsOf(other.text, c.text)?.b);

/** @param {Row} r */
function rowView(r) {
  const c = r.change;
  if (!c) return html`
    <div class="diff-row skipped" key=${r.key}>
    <span></span>
    <span></span>
    <span></span>
    <span>${count(r.skipped || 0, 'line')} alike</span></div>`;
  const pieces = piecesOf(c, r.other);
  const text = pieces
    ? pieces.map((p) => (p.only ? html`<b>${seen(p.text)}</b>` : plain(p.text)))
    : c.op !== ' ' && c.text.trim() === '' ? seen(cut(c.text)) : plain(cut(c.text));
  return html`
    <div class=${`diff-row ${c.op === '+' ? 'in' : c.op === '-' ? 'out' : ''}`} key=${r.key}>
    <span class="n">${c.a || ''}</span>
    <span class="n">${c.b || ''}</span>
    <span class="sign">${c.op === '-' ? '−' : c.op}</span>
    <span class="user">${text}</span></div>`;
}

/** @param {{a: string, b: string, name: string, same: string}} p */
function Diff({ a, b, name, same }) {
  const [from, setFrom] = useState(0);
  const found = useMemo(() => {
    const [l, r] = [a.slice(0, most), b.slice(0, most)];
    const all = changes(linesOf(l), linesOf(r));
    return { rows: rowsOf(all), out: all.filter((c) => c.op === '-').length, in: all.filter((c) => c.op === '+').length };
  }, [a, b]);
  const long = a.length > most || b.length > most;
  const ends = !long && a !== '' && b !== '' && a.endsWith('\n') !== b.endsWith('\n');
  const notes = html`
    ${ends ? html`<p class="body muted small">Only ${a.endsWith('\n') ? 'the first' : 'the second'} ends with a line feed.</p>` : null}
    ${long ? html`<p class="body muted small">Compared is the first megabyte of each.</p>` : null}`;
  if (found.rows.length === 0) return html`<p class="body muted">${ends || long ? 'No other difference' : same}</p>${notes}`;
  return html`
    <p class="body small num">
    <span class="bad">−${number(found.out)}</span> <span class="good">+${number(found.in)}</span> <span class="muted">lines</span></p>
    <div class="diff" tabindex="0" role="group" aria-label=${name}>${found.rows.slice(from, from + page).map(rowView)}</div>
    ${found.rows.length > page
      ? html`
      <div class="more">
      <button type="button" disabled=${from === 0} onClick=${() => setFrom(from - page)}>Earlier</button>
      <span class="muted small num">
      ${number(from + 1)} … ${number(Math.min(from + page, found.rows.length))} of ${number(found.rows.length)}</span>
      <button type="button" disabled=${from + page >= found.rows.length} onClick=${() => setFrom(from + page)}>Later</button></div>`
      : null}
    ${notes}`;
}

/**
 * The lines removed from a and added in b.
 * @param {string} a @param {string} b
 * @param {string} name what the lines are, for screen readers
 * @param {string} [same] the text if nothing differs
 */
export const diff = (a, b, name, same = 'No difference') => h(Diff, { key: name, a, b, name, same });

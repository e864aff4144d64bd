// Terminal colours, and only those. SGR sequences set a style; every other escape sequence is dropped, so that no program can move a
// cursor, write a title, draw a link or hide text in the page. A hyperlink (OSC 8) is its text and then its address in brackets, because
// the two may differ. What comes out are pieces of text with class names, never markup.
import { line as oneLine, plain } from '../app/text.js';

/**
 * @typedef {{fg: string, bg: string, flags: Set<string>}} Style
 * @typedef {{text: string, cls: string, color?: string, background?: string}} Piece
 */

/** @returns {Style} */
export const noStyle = () => ({ fg: '', bg: '', flags: new Set() });

// CSI (also as one C1 character), then strings (OSC, DCS, SOS, PM, APC) up to their end, then two-character escapes.
const escapes = /(?:\u001b\[|\u009b)([0-9:;<=>?]{0,64})[ -/]{0,4}([@-~])|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d\u009e\u009f])[^\u0007\u001b\u009c]{0,4096}(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -/]{0,4}[0-~]/g;

// The address of a hyperlink; empty at its end.
const hyperlink = /^(?:\u001b\]|\u009d)8;[^;]*;([^\u0007\u001b\u009c]*)/;

const most = 500; // pieces of a line; the rest is one piece
const longestAddress = 200;

/** @param {number} n a colour of the table of 256 */
function of256(n) {
  if (n < 8) return 'f' + n;
  if (n < 16) return 'f' + (n - 8);
  if (n >= 232) {
    const v = 8 + (n - 232) * 10;
    return `rgb(${v} ${v} ${v})`;
  }
  const c = n - 16;
  const step = (/** @type {number} */ i) => (i === 0 ? 0 : 55 + i * 40);
  return `rgb(${step(Math.floor(c / 36))} ${step(Math.floor(c / 6) % 6)} ${step(c % 6)})`;
}

/**
 * @param {Style} s
 * @param {string} params
 */
function sgr(s, params) {
  const p = (params || '0').split(/[;:]/).slice(0, 32).map((x) => (x === '' ? 0 : Number(x)));
  for (let i = 0; i < p.length; i++) {
    const n = p[i];
    if (n === 0) {
      s.fg = s.bg = '';
      s.flags.clear();
    } else if (n === 1) s.flags.add('bold');
    else if (n === 2) s.flags.add('dim');
    else if (n === 3) s.flags.add('italic');
    else if (n === 4) s.flags.add('under');
    else if (n === 7) s.flags.add('inverse');
    else if (n === 9) s.flags.add('strike');
    else if (n === 22) {
      s.flags.delete('bold');
      s.flags.delete('dim');
    }
    else if (n === 23) s.flags.delete('italic');
    else if (n === 24) s.flags.delete('under');
    else if (n === 27) s.flags.delete('inverse');
    else if (n === 29) s.flags.delete('strike');
    else if (n >= 30 && n <= 37) s.fg = 'f' + (n - 30);
    else if (n === 39) s.fg = '';
    else if (n >= 40 && n <= 47) s.bg = 'b' + (n - 40);
    else if (n === 49) s.bg = '';
    else if (n >= 90 && n <= 97) s.fg = 'f' + (n - 90);
    else if (n >= 100 && n <= 107) s.bg = 'b' + (n - 100);
    else if (n === 38 || n === 48) {
      let colour = '';
      if (p[i + 1] === 5 && p[i + 2] >= 0 && p[i + 2] <= 255) {
        colour = of256(p[i + 2]);
        i += 2;
      } else if (p[i + 1] === 2 && [p[i + 2], p[i + 3], p[i + 4]].every((v) => v >= 0 && v <= 255)) {
        colour = `rgb(${p[i + 2]} ${p[i + 3]} ${p[i + 4]})`;
        i += 4;
      } else break;
      if (n === 38) s.fg = colour;
      else s.bg = colour.replace(/^f/, 'b');
    }
  }
}

/**
 * @param {Style} s
 * @param {string} text
 * @returns {Piece}
 */
function piece(s, text) {
  const cls = [...s.flags].map((f) => 's-' + f);
  /** @type {Piece} */
  const out = { text: plain(text), cls: '' };
  if (s.fg.startsWith('rgb')) out.color = s.fg;
  else if (s.fg) cls.push(s.fg);
  if (s.bg.startsWith('rgb')) out.background = s.bg;
  else if (s.bg) cls.push(s.bg);
  out.cls = cls.join(' ');
  return out;
}

/** Moves a style over the colours of a text. @param {string} text @param {Style} s */
export function styled(text, s) {
  escapes.lastIndex = 0;
  for (let m; (m = escapes.exec(text));) if (m[2] === 'm' && !/[<=>?]/.test(m[1])) sgr(s, m[1]);
}

/**
 * One line as pieces; s is the style at its beginning and is left as it is at its end. A hyperlink ends with its line.
 * @param {string} line
 * @param {Style} s
 * @param {number} [left] pieces at most
 * @returns {Piece[]}
 */
export function pieces(line, s, left = most) {
  const limit = Math.min(left, most);
  /** @type {Piece[]} */
  const out = [];
  let from = 0;
  let address = '';
  let linked = 0; // the first piece of the hyperlink
  const endLink = () => {
    if (address && out.slice(linked).map((p) => p.text).join('') !== plain(address)) out.push({ text: ` [${oneLine(address, longestAddress)}]`, cls: 's-dim' });
    address = '';
  };
  escapes.lastIndex = 0;
  for (let m; out.length < limit && (m = escapes.exec(line));) {
    if (m.index > from) out.push(piece(s, line.slice(from, m.index)));
    from = m.index + m[0].length;
    if (m[2] === 'm' && !/[<=>?]/.test(m[1])) sgr(s, m[1]);
    const link = hyperlink.exec(m[0]);
    if (link) {
      endLink();
      address = link[1];
      linked = out.length;
    }
  }
  if (from < line.length) {
    const rest = line.slice(from);
    out.push(piece(s, rest.replace(escapes, '')));
    if (out.length > limit) styled(rest, s);
  }
  endLink();
  return out;
}

/** A whole text without escape sequences. @param {string} s */
export const stripped = (s) => s.replace(escapes, '');

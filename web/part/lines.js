// What a program wrote, as lines: chunks go in, lines with the colours at their beginnings come out. Bounded: the oldest lines are
// dropped when there is more text than the page should hold.
import { noStyle, pieces } from './ansi.js';

/** @typedef {{no: number, stream: string, text: string, style: import('./ansi.js').Style, note?: boolean}} Line */

/** The style of lines that begin without one: hundreds of thousands of lines share it, and nothing changes it. */
const bare = noStyle();

/** A style as it is now. @param {import('./ansi.js').Style} s */
const kept = (s) => (s.fg === '' && s.bg === '' && s.flags.size === 0 ? bare : { ...s, flags: new Set(s.flags) });

const longest = 4096; // characters of a line that are shown

export class Lines {
  /** @param {number} [limit] characters kept */
  constructor(limit = 4 << 20) {
    this.limit = limit;
    /** @type {Line[]} */
    this.all = [];
    this.size = 0;
    this.dropped = 0;
    this.next = 1;
    /** @type {Map<string, {line: Line, style: import('./ansi.js').Style, decoder: TextDecoder}>} */
    this.open = new Map(); // by stream: the line that has no end yet
  }

  /** The lines before are not known, so none has a number. */
  unnumbered() {
    this.next = NaN;
  }

  /** A line of the page itself. @param {string} text */
  note(text) {
    this.open.clear();
    this.all.push({ no: 0, stream: '', text, style: noStyle(), note: true });
  }

  /**
   * @param {string} stream
   * @param {string|Uint8Array} piece
   */
  add(stream, piece) {
    let o = this.open.get(stream);
    const fresh = !o;
    if (!o) o = { line: /** @type {Line} */ (/** @type {unknown} */ (null)), style: noStyle(), decoder: new TextDecoder() };
    this.open.set(stream, o);
    const text = o.decoder.decode(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece, { stream: true });
    const parts = text.split('\n');
    parts.forEach((part, i) => {
      const at = /** @type {NonNullable<typeof o>} */ (o);
      if ((i === 0 && fresh) || i > 0 || !at.line) {
        if (i === parts.length - 1 && part === '') {
          at.line = /** @type {Line} */ (/** @type {unknown} */ (null));
          return;
        }
        at.line = { no: this.next++, stream, text: '', style: kept(at.style) };
        this.all.push(at.line);
      }
      at.line.text += part;
      this.size += part.length;
      if (i < parts.length - 1) {
        finish(at.line);
        pieces(at.line.text, at.style); // moves the style to the end of the line
        at.line = /** @type {Line} */ (/** @type {unknown} */ (null));
      }
    });
    this.trim();
  }

  trim() {
    if (this.size <= this.limit) return;
    let n = 0;
    while (n < this.all.length - 1 && this.size > this.limit * 0.75) this.size -= this.all[n++].text.length;
    this.dropped += n;
    this.all.splice(0, n);
  }
}

/** A progress bar writes one line again and again: only its last state is kept. @param {Line} l */
function finish(l) {
  const text = l.text.endsWith('\r') ? l.text.slice(0, -1) : l.text;
  const at = text.lastIndexOf('\r');
  l.text = at >= 0 ? text.slice(at + 1) : text;
}

/** The text of a line as it is drawn. @param {Line} l */
export function drawn(l) {
  const whole = l.text.endsWith('\r') ? l.text.slice(0, -1) : l.text;
  const at = whole.lastIndexOf('\r');
  const text = at >= 0 ? whole.slice(at + 1) : whole;
  const cut = text.length > longest;
  const style = { ...l.style, flags: new Set(l.style.flags) };
  return { pieces: pieces(cut ? text.slice(0, longest) : text, style), cut: cut ? text.length - longest : 0 };
}

// What a program wrote, as lines: chunks go in, lines with the colours at their beginnings come out. Bounded: the oldest lines are
// dropped when there are more lines or more text than the page should hold, and of a long line only the beginning is kept.
import { noStyle, pieces, styled } from './ansi.js';

/** @typedef {import('./ansi.js').Style} Style */
/** @typedef {{no: number, stream: string, text: string, style: Style, cut: number, note?: boolean}} Line cut: characters behind text that are not kept */
/** @typedef {{line: Line|null, style: Style, after: Style|null, back: boolean, decoder: TextDecoder}} Open style: at the beginning of the line; after: at its end, where that is not kept; back: a carriage return came last, which begins the line anew or ends it with the line feed that follows */

/** The style of lines that begin without one: hundreds of thousands of lines share it, and nothing changes it. */
const bare = noStyle();

/** @param {Style} s @returns {Style} */
const copy = (s) => ({ ...s, flags: new Set(s.flags) });

/** A style as it is now. @param {Style} s */
const kept = (s) => (s.fg === '' && s.bg === '' && s.flags.size === 0 ? bare : copy(s));

const longest = 4096; // characters of a line that are shown
const held = 16 * longest; // and that are kept
const mostLines = 600000; // of any length: 600,000 empty ones take 30 MB

export class Lines {
  /** @param {number} [limit] characters kept */
  constructor(limit = 4 << 20) {
    this.limit = limit;
    /** @type {Line[]} */
    this.all = [];
    this.size = 0; // characters of all
    this.dropped = 0;
    this.next = 1;
    /** @type {Map<string, Open>} */
    this.open = new Map(); // by stream
  }

  /** The lines before are not known, so none has a number. */
  unnumbered() {
    this.next = NaN;
  }

  /** A line of the page itself. @param {string} text */
  note(text) {
    this.open.clear();
    this.all.push({ no: 0, stream: '', text, style: noStyle(), cut: 0, note: true });
    this.size += text.length;
  }

  /**
   * @param {string} stream
   * @param {string|Uint8Array} piece
   */
  add(stream, piece) {
    let o = this.open.get(stream);
    if (!o) this.open.set(stream, o = { line: null, style: noStyle(), after: null, back: false, decoder: new TextDecoder() });
    const parts = o.decoder.decode(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece, { stream: true }).split('\n');
    for (let i = 0; i < parts.length; i++) {
      const ends = i < parts.length - 1;
      if (parts[i] !== '' || (ends && !o.line)) this.#write(stream, o, parts[i]);
      if (ends) this.#end(o);
    }
    this.#trim();
  }

  /** Text behind what an open line has; it has no line feed. @param {string} stream @param {Open} o @param {string} part */
  #write(stream, o, part) {
    if (!o.line) this.all.push(o.line = { no: this.next++, stream, text: '', style: kept(o.style), cut: 0 });
    const l = o.line;
    let text = o.back ? `\r${part}` : part;
    o.back = text.endsWith('\r');
    if (o.back) text = text.slice(0, -1);
    const again = text.lastIndexOf('\r'); // what stands before it is written over; its colours stay
    if (again >= 0) {
      this.#pass(o);
      styled(text.slice(0, again), o.style);
      l.style = kept(o.style);
      this.#put(l, '');
      l.cut = 0;
      text = text.slice(again + 1);
    }
    if (!o.after) {
      const room = held - l.text.length;
      this.#put(l, l.text + text.slice(0, room));
      if (text.length <= room) return;
      o.after = copy(o.style);
      styled(l.text, o.after);
      text = text.slice(room);
    }
    styled(text, o.after);
    l.cut += text.length;
  }

  /** Takes the style of a line from its beginning to its end. @param {Open} o */
  #pass(o) {
    if (o.after) o.style = o.after;
    else if (o.line) styled(o.line.text, o.style);
    o.after = null;
  }

  /** @param {Open} o */
  #end(o) {
    this.#pass(o);
    o.line = null;
    o.back = false;
  }

  /** @param {Line} l @param {string} text */
  #put(l, text) {
    this.size += text.length - l.text.length;
    l.text = text;
  }

  #trim() {
    if (this.size <= this.limit && this.all.length <= mostLines) return;
    let n = 0;
    while (n < this.all.length - 1 && (this.size > this.limit * 0.75 || this.all.length - n > mostLines * 0.75)) this.size -= this.all[n++].text.length;
    this.dropped += n;
    const gone = new Set(this.all.splice(0, n));
    // An open line that is dropped goes on in a new one.
    for (const o of this.open.values()) if (o.line && gone.has(o.line)) this.#end(o);
  }
}

/** The text of a line as it is drawn. @param {Line} l @param {number} [left] pieces at most */
export function drawn(l, left) {
  return { pieces: pieces(l.text.slice(0, longest), copy(l.style), left), cut: l.cut + Math.max(0, l.text.length - longest) };
}

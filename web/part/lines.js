// A program's output as lines: it takes chunks and gives lines with the colours at their start. It is bounded: the oldest lines are
// dropped when there are more lines or more text than the page should hold, and of a long line only the beginning is kept.
import { numbered } from '../app/text.js';
import { noStyle, pieces, styled } from './ansi.js';

/** @typedef {import('./ansi.js').Style} Style */
/** @typedef {{no: number, stream: string, attempt: number, at: number, text: string, style: Style, cut: number, wide: number, note?: boolean}} Line at: its first byte in the stream of the attempt; cut: characters behind text that are not kept; wide: columns that it takes, once they have been counted */
/** @typedef {{attempt: number, stream: string, at: number}} Place a byte of what an attempt has written to a stream */
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
const apart = 16 << 10; // characters between two marks
const linesApart = 1000;

export class Lines {
  /** @param {number} [limit] characters kept @param {boolean} [raw] a carriage return and an escape sequence are characters like all others */
  constructor(limit = 4 << 20, raw = false) {
    this.limit = limit;
    this.raw = raw;
    /** @type {Line[]} */
    this.all = [];
    this.size = 0; // characters of all
    this.dropped = 0;
    this.next = 1;
    /** @type {Map<string, Open>} */
    this.open = new Map(); // by stream
    /** @type {{line: number, came: number, attempt: number, seq: number}[]} */
    this.marks = []; // where some chunks begin: in which line, counted with those that were dropped
    this.last = { attempt: 0, seq: 0 }; // chunk
    /** @type {Map<string, number>} */
    this.ends = new Map(); // offsets of the received part of each stream of each attempt
    this.came = 0; // characters
    this.changes = 0;
  }

  /** The earlier lines are unknown, so no line has a number. */
  unnumbered() {
    this.next = NaN;
  }

  /** A line of the page itself. @param {string} text */
  note(text) {
    this.open.clear();
    this.all.push({ no: 0, stream: '', attempt: 0, at: 0, text, style: bare, cut: 0, wide: -1, note: true });
    this.size += text.length;
    this.changes++;
  }

  /**
   * @param {string} stream
   * @param {string|Uint8Array} piece
   * @param {{attempt: number, seq: number, offset: number}} [of] the chunk
   */
  add(stream, piece, of = { attempt: 1, seq: 0, offset: 0 }) {
    if (this.last.attempt && of.attempt !== this.last.attempt) this.note(`Attempt ${of.attempt}`);
    this.last = { attempt: of.attempt, seq: of.seq };
    const line = this.dropped + this.all.length;
    const mark = this.marks.at(-1);
    if (!mark || this.came - mark.came >= apart || line - mark.line >= linesApart) this.marks.push({ line, came: this.came, attempt: of.attempt, seq: of.seq });
    let o = this.open.get(stream);
    if (!o) this.open.set(stream, o = { line: null, style: noStyle(), after: null, back: false, decoder: new TextDecoder() });
    const bytes = typeof piece === 'string' ? new TextEncoder().encode(piece) : piece;
    const text = o.decoder.decode(bytes, { stream: true });
    const parts = text.split('\n');
    for (let i = 0, at = 0; i < parts.length; i++) { // each line feed of the text is a byte of its own, in the same order
      const ends = i < parts.length - 1;
      if (parts[i] !== '' || (ends && !o.line)) this.#write(stream, o, parts[i], { attempt: of.attempt, at: of.offset + at });
      if (!ends) break;
      this.#end(o);
      at = bytes.indexOf(10, at) + 1;
    }
    this.came += text.length;
    this.ends.set(`${of.attempt} ${stream}`, of.offset + bytes.length);
    this.changes++;
    this.#trim();
  }

  /** The line that has a byte, as its index in all; -1: it is not here. @param {Place} p */
  find({ attempt, stream, at }) {
    if (!(at < (this.ends.get(`${attempt} ${stream}`) ?? 0))) return -1;
    let found = -1;
    for (let i = 0; i < this.all.length; i++) {
      const l = this.all[i];
      if (l.stream !== stream || l.attempt !== attempt) continue;
      if (l.at > at) break;
      found = i;
    }
    return found;
  }

  /** Text behind what an open line has; it has no line feed. @param {string} stream @param {Open} o @param {string} part @param {{attempt: number, at: number}} from */
  #write(stream, o, part, from) {
    if (!o.line) this.all.push(o.line = { no: this.next++, stream, ...from, text: '', style: kept(o.style), cut: 0, wide: -1 });
    const l = o.line;
    l.wide = -1;
    if (this.raw) {
      const room = held - l.text.length;
      this.#put(l, l.text + part.slice(0, room));
      l.cut += Math.max(0, part.length - room);
      return;
    }
    let text = o.back ? `\r${part}` : part;
    o.back = text.endsWith('\r');
    if (o.back) text = text.slice(0, -1);
    const again = text.lastIndexOf('\r'); // the text before it is overwritten; its colours stay
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
    if (this.raw) return;
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
    const marks = this.marks.findIndex((m) => m.line >= this.dropped);
    this.marks.splice(0, marks < 0 ? this.marks.length : marks);
    const gone = new Set(this.all.splice(0, n));
    // A dropped open line continues in a new one.
    for (const o of this.open.values()) if (o.line && gone.has(o.line)) this.#end(o);
  }
}

/** The text of a line as it is drawn. @param {Line} l @param {number} [left] pieces at most @param {boolean} [raw] */
export function drawn(l, left, raw = false) {
  const text = l.text.slice(0, longest);
  return { pieces: raw ? [{ text: numbered(text), cls: '' }] : pieces(text, copy(l.style), left), cut: l.cut + Math.max(0, l.text.length - longest) };
}

/** How many columns a line takes at most. @param {Line} l @param {boolean} raw */
function columnsOf(l, raw) {
  if (l.wide >= 0) return l.wide;
  const { pieces: all, cut } = l.text.length <= longest && l.cut === 0 && /^[ -~]*$/.test(l.text) ? { pieces: [l], cut: 0 } : drawn(l, undefined, raw);
  let wide = cut ? 40 : 0;
  for (const { text } of all) {
    if (/^[ -~]*$/.test(text)) wide += text.length;
    else for (const c of text) wide += c === '\t' ? 8 : c >= ' ' && c <= '~' ? 1 : 2;
  }
  return (l.wide = wide);
}

/** Where lines begin that are broken at a number of columns, in rows, and how many rows they have in all. @param {Line[]} lines @param {number} columns @param {boolean} raw */
export function broken(lines, columns, raw) {
  const starts = new Int32Array(lines.length + 1);
  for (let i = 0; i < lines.length; i++) starts[i + 1] = starts[i] + Math.max(1, Math.ceil(columnsOf(lines[i], raw) / columns));
  return starts;
}

/** The index of the line that has a row. @param {Int32Array} starts @param {number} row */
export function lineAt(starts, row) {
  let low = 0;
  let high = starts.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}

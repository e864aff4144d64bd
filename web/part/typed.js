// Typed input of an interactive execution. Each request names its offset, and is kept until a response
// confirms it: repeated after a broken connection, it is accepted once.

/** @typedef {{offset: number, closed: boolean}} Given how much the server has */
/** @typedef {{look: () => Promise<Given>, read: () => Promise<Uint8Array>, send: (text: string, offset: number, last: boolean) => Promise<Given>, pause: (ms: number) => Promise<unknown>}} Way */
/** @typedef {{text: string, last: boolean, at?: number}} Piece last: nothing follows it; at: where it belongs, from its first send on */

/** Bytes that were given before which are fetched to be shown, and characters that are kept. */
const most = 64000;

/** @param {string} s */
const size = (s) => new TextEncoder().encode(s).length;

/** Whether the same request may succeed later. @param {any} e */
const passing = (e) => !(e?.status > 0) || e.status === 429 || e.status >= 500;

export class Typed {
  /** @param {Way} way @param {() => void} changed called after every change */
  constructor(way, changed) {
    this.way = way;
    this.changed = changed;
    this.offset = 0; // how many bytes the server has, as far as is known
    this.closed = false;
    this.known = false; // offset and closed came from the server
    this.left = 0; // how many of these bytes are not in text
    this.text = '';
    /** @type {Piece[]} */
    this.waiting = []; // the first of them is on its way, unless it was refused
    this.refused = false;
    /** @type {unknown} */
    this.error = null;
    this.busy = false;
  }

  /** Sends a text after all earlier ones. @param {string} text @param {boolean} [last] nothing follows it */
  async type(text, last = false) {
    this.waiting.push({ text, last });
    await this.#run();
  }

  async #run() {
    if (this.busy || this.refused) return;
    this.busy = true;
    this.changed();
    for (let wait = 500; this.waiting.length > 0;) {
      const w = this.waiting[0];
      try {
        if (!this.known) await this.#take(await this.way.look());
        w.at ??= this.offset;
        const given = await this.way.send(w.text, w.at, w.last);
        this.waiting.shift();
        this.error = null;
        wait = 500;
        const end = w.at + size(w.text);
        if (this.offset < end) {
          this.text += w.text;
          this.offset = end;
        }
        if (this.text.length > most) {
          this.text = this.text.slice(-most / 2);
          this.left = this.offset - size(this.text);
        }
        this.closed ||= given.closed;
        if (given.offset > this.offset) this.known = false; // another client sends, too
      } catch (e) {
        this.error = e;
        if (!passing(e)) {
          this.refused = true;
          break;
        }
        this.changed();
        await this.way.pause(wait);
        wait = Math.min(2 * wait, 8000);
      }
      this.changed();
    }
    this.busy = false;
    this.changed();
  }

  /** Loads what the server has: input from before this page was loaded, or from others. */
  async look() {
    if (this.busy) return;
    await this.#take(await this.way.look());
    this.changed();
  }

  /** @param {Given} given */
  async #take(given) {
    if (given.offset > this.offset) {
      const bytes = given.offset > most ? null : await this.way.read();
      const n = bytes ? bytes.length : given.offset;
      if (n > this.offset) { // input sent meanwhile may have arrived before this response
        this.offset = n;
        this.text = bytes ? new TextDecoder().decode(bytes) : '';
        this.left = bytes ? 0 : n;
      }
    }
    this.closed ||= given.closed;
    this.known = true;
  }

  /** Sends refused input again, after the server's present end. */
  async again() {
    this.refused = false;
    this.error = null;
    this.known = false;
    for (const w of this.waiting) w.at = undefined;
    await this.#run();
  }

  /** Discards refused input, and what was typed after it. */
  drop() {
    this.waiting = [];
    this.refused = false;
    this.error = null;
    this.changed();
  }

  /** The latest lines, at most n, first those that have arrived. @param {number} n */
  rows(n) {
    const lines = (/** @type {string} */ s) => (s === '' ? [] : s.replace(/\n$/, '').split('\n'));
    return [...lines(this.text).map((text) => ({ text, waits: false })), ...this.waiting.flatMap((w) => lines(w.text).map((text) => ({ text, waits: true })))].slice(-n);
  }
}

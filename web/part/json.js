// JSON as it was written: it is shown from the text itself.
import { html, h, useState } from '../vendor/preact.js';
import { plain, line, bytes } from '../app/text.js';
import { endOf, members, space } from './members.js';

/** @typedef {{text: string, cls: string}} Token */

const deepest = 32; // levels that are indented: 250,000 elements within 200 lists would be 100 MB

/**
 * JSON with line breaks and indentation of its own, as tokens. Strings and numbers stay as they are written.
 * @param {string} s
 * @param {number} [most] characters after which no token begins
 * @returns {Token[]}
 */
export function tokens(s, most = Infinity) {
  /** @type {Token[]} */
  const out = [];
  let depth = 0;
  let size = 0;
  let gap = '';
  const put = (/** @type {string} */ text, /** @type {string} */ cls) => {
    if (gap) out.push({ text: gap, cls: '' });
    size += gap.length + text.length;
    gap = '';
    out.push({ text, cls });
  };
  const indent = () => '\n' + '  '.repeat(Math.min(depth, deepest));
  for (let i = 0; i < s.length && size < most;) {
    const c = s[i];
    if (space.test(c)) {
      i++;
      continue;
    }
    if (c === '{' || c === '[') {
      let j = i + 1;
      while (space.test(s[j] || '')) j++;
      if (s[j] === '}' || s[j] === ']') {
        put(c + s[j], 'j-pun');
        i = j + 1;
        continue;
      }
      put(c, 'j-pun');
      depth++;
      gap = indent();
      i++;
    } else if (c === '}' || c === ']') {
      depth = Math.max(0, depth - 1);
      gap = indent();
      put(c, 'j-pun');
      i++;
    } else if (c === ',') {
      put(c, 'j-pun');
      gap = indent();
      i++;
    } else if (c === ':') {
      put(': ', 'j-pun');
      i++;
    } else {
      const end = Math.max(endOf(s, i), i + 1);
      const text = s.slice(i, end);
      let after = end;
      while (space.test(s[after] || '')) after++;
      put(text, c !== '"' ? (/[-0-9]/.test(c) ? 'j-num' : 'j-lit') : s[after] === ':' ? 'j-key' : 'j-str');
      i = end;
    }
  }
  return out;
}

/** The first members of an object in one line, with the digits that it was sent with. @param {string} raw */
export function gist(raw) {
  const all = Object.entries(members(raw));
  return (all.length === 0 ? [raw] : all.slice(0, 6).map(([k, v]) => `${k}: ${v[0] === '"' ? JSON.parse(v) : v}`)).map((s) => line(s, 100)).join(' · ');
}

const coloured = 1200; // tokens with an element of their own; beyond that the text has no colours
const shown = 512 << 10; // characters shown at first

/** @param {{raw: string, name: string}} p */
function Json({ raw, name }) {
  const [all, setAll] = useState(false);
  const list = tokens(raw, all ? Infinity : shown);
  const text = list.length > coloured || raw.length > shown ? list.map((t) => t.text).join('') : null;
  const cut = !all && text !== null && text.length > shown;
  return html`
    <div>
    <pre class="code wrap" tabindex="0" aria-label=${name}>
    ${text !== null ? plain(cut ? text.slice(0, shown) : text)
      : list.map((t) => (t.cls === '' || t.cls === 'j-pun' ? plain(t.text) : html`<span class=${t.cls}>${plain(t.text)}</span>`))}</pre>
    ${cut ? html`
    <div class="more">
    <span class="muted">The beginning of ${bytes(raw.length)}</span>
    <button type="button" onClick=${() => setAll(true)}>Show all</button></div>` : null}</div>`;
}

/** A JSON value from its text. @param {string} raw @param {string} name */
export const json = (raw, name) => h(Json, { raw, name });

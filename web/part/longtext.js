// A text whose beginning is shown until the user wants all of it: a browser takes seconds to lay out megabytes.
import { html, h, useState } from '../vendor/preact.js';
import { plain, bytes } from '../app/text.js';

export const shown = 512 << 10; // characters

/** @typedef {{text: string, name: string, cls?: string, draw?: (text: string) => any}} Shown draw: how a text is drawn; nothing: as it is */

/** @param {Shown} p */
function LongText({ text, name, cls = '', draw = plain }) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > shown;
  return html`
    <div>
    <pre class=${`code ${cls}`} tabindex="0" aria-label=${name}>${draw(cut ? text.slice(0, shown) : text)}</pre>
    ${cut ? html`
    <div class="more">
    <span class="muted">The beginning of ${bytes(text.length)}</span>
    <button type="button" onClick=${() => setAll(true)}>Show all</button></div>` : null}</div>`;
}

/** @param {Shown} p */
export const longText = (p) => h(LongText, p);

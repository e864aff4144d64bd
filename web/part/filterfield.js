// A filter's field. The address holds its value; typed text stays in the field until Enter or until it loses the focus: a list is redrawn every
// few seconds, and a field with the address's text would lose half-typed text.
import { html, useLayoutEffect, useState } from '../vendor/preact.js';

/** @param {{label: string, placeholder: string, value: string, set: (text: string) => void, first?: boolean, wide?: boolean}} p value: what the address has; first: the field that / goes to */
export function FilterField({ label, placeholder, value, set, first, wide }) {
  const [text, setText] = useState(value);
  useLayoutEffect(() => setText(value), [value]); // before the next key: an effect after the frame lost text that was typed until then
  return html`
    <input aria-keyshortcuts=${first ? '/' : undefined} class=${wide ? 'wide' : undefined} aria-label=${label}
        placeholder=${placeholder} value=${text} spellcheck=${false} onInput=${(/** @type {any} */ e) => setText(e.target.value)}
        onChange=${(/** @type {any} */ e) => set(e.target.value.trim())} />`;
}

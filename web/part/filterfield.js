// A field of a filter that is in the address. What is typed is the field's own until Enter or until it is left: a list is drawn anew every
// few seconds, and a field whose text is the address's would lose what is half typed.
import { html, useLayoutEffect, useState } from '../vendor/preact.js';

/** @param {{label: string, placeholder: string, value: string, set: (text: string) => void, first?: boolean, wide?: boolean}} p value: what the address has; first: the field that / goes to */
export function FilterField({ label, placeholder, value, set, first, wide }) {
  const [text, setText] = useState(value);
  useLayoutEffect(() => setText(value), [value]); // before a key can come: an effect after the frame took what was typed until then
  return html`
    <input aria-keyshortcuts=${first ? '/' : undefined} class=${wide ? 'wide' : undefined} aria-label=${label}
        placeholder=${placeholder} value=${text} spellcheck=${false} onInput=${(/** @type {any} */ e) => setText(e.target.value)}
        onChange=${(/** @type {any} */ e) => set(e.target.value.trim())} />`;
}

// The condition of the list, in the language of docs/finding.md. What is wrong with it is shown beneath the field, at its place.
import { html, useEffect, useState } from '../vendor/preact.js';
import { Problem } from '../app/api.js';
import { plain } from '../app/text.js';
import { around } from '../part/around.js';

/** What the server says is wrong with the condition. @param {unknown} error */
export const faultOf = (error) => (error instanceof Problem ? error.problem.errors?.find((f) => f.path === '?where') : undefined);

/** @param {{value: string, error: unknown, set: (text: string) => void}} p value: the condition in the address, which error is about */
export function Where({ value, error, set }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const fault = value ? faultOf(error) : undefined;
  const place = fault ? around(value, fault) : null;
  const submit = (/** @type {Event} */ e) => {
    e.preventDefault();
    set(text.trim());
  };
  return html`<form class="where" onSubmit=${submit}>
    <input name="where" aria-label="Condition, such as label.team = docs and status = failed and created > -7d" placeholder="label.team = docs and status = failed and created > -7d" value=${text} spellcheck=${false} autocomplete="off"
      aria-invalid=${fault ? 'true' : undefined} aria-describedby=${fault ? 'where-fault' : undefined} onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
    <button type="submit" disabled=${text.trim() === value}>Find</button>
    ${fault && place ? html`<div class="small bad user" id="where-fault" role="alert"><p><code>${plain(place.before)}<span class="at">${plain(place.at)}</span>${plain(place.after)}</code></p><p>${plain(fault.message)}${fault.fix ? html` <span>(${plain(fault.fix)})</span>` : null}</p></div>` : null}
  </form>`;
}

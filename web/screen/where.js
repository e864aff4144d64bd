// The condition of the list, in the language of docs/finding.md. A fault is shown beneath the field, at its place.
import { html, h, useLayoutEffect, useState } from '../vendor/preact.js';
import { Problem } from '../app/api.js';
import { lazy } from '../app/lazy.js';

const Fault = lazy(() => import('./fault.js').then((m) => m.Fault), () => null);

/** The server's error about the condition. @param {unknown} error */
export const faultOf = (error) => (error instanceof Problem ? error.problem.errors?.find((f) => f.path === '?where') : undefined);

/** @param {{value: string, error: unknown, set: (text: string) => void}} p value: the condition in the address, which error is about */
export function Where({ value, error, set }) {
  const [text, setText] = useState(value);
  useLayoutEffect(() => setText(value), [value]);
  const fault = value ? faultOf(error) : undefined;
  const submit = (/** @type {Event} */ e) => {
    e.preventDefault();
    set(text.trim());
  };
  return html`
    <form class="where" onSubmit=${submit}>
      <input name="where" aria-label="Condition, such as label.team = docs and status = failed and created > -7d"
          placeholder="label.team = docs and status = failed and created > -7d" value=${text} spellcheck=${false} autocomplete="off"
          aria-invalid=${fault ? 'true' : undefined} aria-describedby=${fault ? 'where-fault' : undefined}
          onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
      <button type="submit" disabled=${text.trim() === value}>Find</button>
      ${fault ? h(Fault, { value, fault }) : null}
    </form>`;
}

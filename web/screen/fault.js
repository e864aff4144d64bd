// The fault in the list's condition, at its place.
import { html } from '../vendor/preact.js';
import { plain } from '../app/text.js';
import { around } from '../part/around.js';

/** @param {{value: string, fault: import('../types').FieldError}} p value: the condition that the fault is in */
export function Fault({ value, fault }) {
  const place = around(value, fault);
  return html`
    <div class="small bad user" id="where-fault" role="alert">
      <p><code>${plain(place.before)}<span class="at">${plain(place.at)}</span>${plain(place.after)}</code></p>
      <p>${plain(fault.message)}${fault.fix ? html` <span>(${plain(fault.fix)})</span>` : null}</p>
    </div>`;
}

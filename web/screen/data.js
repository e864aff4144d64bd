// Input and output, from the server's text.
import { html } from '../vendor/preact.js';
import { line, count } from '../app/text.js';
import { json } from '../part/json.js';
import { longText } from '../part/longtext.js';
import { copyAs } from '../part/copyas.js';
import { panel, empty, copy } from '../part/kit.js';

/** @param {{raw: string|undefined, name: string, none: string}} p */
export function Data({ raw, name, none }) {
  if (raw === undefined) return html`<div class="panel">${empty(`No ${name.toLowerCase()}`, html`<p>${none}</p>`)}</div>`;
  return panel({ title: name, actions: copy(raw, `Copy the ${name.toLowerCase()}`), children: json(raw, name) });
}

/** A text of a program, with its lines. @param {string} title @param {string} text */
export const source = (title, text) => panel({ title, actions: html`
  <span class="muted small">${count(text.split('\n').length, 'line')}</span>
  ${copy(text, `Copy: ${title}`)}`,
  children: longText({ text, name: title }) });

/** Text of a file or of stdin in an input: a string, or an object that has it. @param {any} c */
const contentText = (c) => (typeof c === 'string' ? c : typeof c?.text === 'string' ? c.text : null);

/** @param {import('./execution.js').Shown} p */
export function Input(p) {
  const { x, raw } = p;
  return html`
    <div class="stack">
      <div class="row">
        ${copyAs((w) => w.cli(w.requestOf(x, raw.input).asked), (w) => w.curl('api/v1/executions', w.requestOf(x, raw.input).body))}
      </div>
      ${parts(p)}
    </div>`;
}

/** Its input, in parts. @param {import('./execution.js').Shown} p */
function parts({ x, raw }) {
  const v = /** @type {any} */ (x.input);
  const code = x.kind === 'code' && v && typeof v === 'object' && typeof v.source === 'string';
  if (!code) return Data({ raw: raw.input, name: 'Input', none: 'It was submitted without an input.' });
  const stdin = contentText(v.stdin);
  return html`<div class="stack">
    ${source(`Program, ${line(v.language, 40)}`, v.source)}
    ${stdin ? source('Standard input', stdin) : null}
    ${Object.entries(v.files || {}).slice(0, 50).map(([name, c]) => {
      const text = contentText(c);
      return text === null ? null : source(`File ${line(name, 120)}`, text);
    })}
    ${Data({ raw: raw.input, name: 'Input', none: '' })}
  </div>`;
}

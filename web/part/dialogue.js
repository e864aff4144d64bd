// The messages between a program and an interactor, in order.
import { html } from '../vendor/preact.js';
import { line, bytes } from '../app/text.js';
import { written } from './written.js';

/**
 * The program's turns are on one side, the interactor's on the other; bytes that are not UTF-8 are in base64.
 * @param {{turns: import('../types').CaseTurn[], of: string}} p of: the name of the case
 */
export const dialogue = ({ turns, of }) => html`
  <div class="tight">
    <h3>What both wrote</h3>
    <ol class="dialogue" aria-label=${`What the program and the interactor of case ${line(of)} wrote`}>
      ${turns.map((t) => html`
        ${t.omitted ? html`<li class="muted small">${bytes(t.omitted)} not kept</li>` : null}
        <li class=${t.by === 'program' ? '' : 'other'}>
          <span class="muted small">${line(t.by)}${t.base64 ? ', not text, in base64' : ''}</span>
          <pre class="code wrap">${written(t.base64 || t.text || '')}</pre>
        </li>`)}
    </ol>
  </div>`;

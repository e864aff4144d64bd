// Buttons that copy a request as a command. The code for that is loaded when one is pressed.
import { html, h, useState } from '../vendor/preact.js';

/** @typedef {(w: import('./request.js').Written) => string} Text a command; an error says why there is none for the request */

/** @param {{label: string, text: Text}} p */
function CopyAs({ label, text }) {
  const [said, say] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text(await import('./request.js').then((m) => m))).then(() => say('Copied'), () => say('Not allowed here'));
    } catch (e) {
      say(/** @type {Error} */ (e).message);
    }
    setTimeout(() => say(''), 4000);
  };
  return html`
    <button type="button" class="plain" onClick=${copy}>${label}</button>
    ${said ? html`<span class="muted small" role="status">${said}</span>` : null}`;
}

/** @param {Text} cli @param {Text} curl */
export const copyAs = (cli, curl) => [h(CopyAs, { key: 'cli', label: 'Copy as CLI', text: cli }), h(CopyAs, { key: 'curl', label: 'Copy as curl', text: curl })];

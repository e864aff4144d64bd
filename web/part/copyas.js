// Buttons that copy a request as a command.
import { html, h, useState } from '../vendor/preact.js';

/** @param {{label: string, text: () => string}} p text: empty where there is no such command */
function CopyAs({ label, text }) {
  const [said, say] = useState('');
  const copy = async () => {
    let now;
    try {
      now = text();
    } catch (e) {
      say(/** @type {Error} */ (e).message);
      return;
    }
    if (now === '') say('It has settings that pawl run has no flags for');
    else await navigator.clipboard.writeText(now).then(() => say('Copied'), () => say('Not allowed here'));
    setTimeout(() => say(''), 4000);
  };
  return html`<button type="button" class="plain" onClick=${copy}>${label}</button>${said ? html`<span class="muted small" role="status">${said}</span>` : null}`;
}

/** @param {() => string} cli @param {() => string} curl */
export const copyAs = (cli, curl) => [h(CopyAs, { key: 'cli', label: 'Copy as CLI', text: cli }), h(CopyAs, { key: 'curl', label: 'Copy as curl', text: curl })];

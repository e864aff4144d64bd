// The list of keys.
import { html } from '../vendor/preact.js';
import { places } from '../app/keys.js';
import { dialog } from '../part/kit.js';

/** What the keys do. @type {[string[], string][]} */
const meanings = [
  [['Ctrl', 'K'], 'Search: a screen, an order, an id, a definition'],
  [['j'], 'Next row, or event of a replay'], [['k'], 'Previous row or event'], [['Enter'], 'Open the row'], [['x'], 'Mark the row'],
  [['w'], 'Why it waits'], [['c'], 'Cancel or kill: this one, the row or those that are marked'], [['r'], 'Run again: this one, the row or those that are marked'],
  [['f'], 'Logs, at their end'], [['['], 'The one before it'], [[']'], 'The one after it'], [['y'], 'Copy the id'],
  [['/'], 'Filter'], [['.'], 'Show what is new'], [['Esc'], 'Leave the field, or go back to the list'], [['?'], 'These keys'],
];

/** @param {{close: () => void}} p */
export const Help = ({ close }) => dialog({ name: 'Keys', open: true, close }, html`
  <div class="body">
    <h2>Keys</h2>
    <dl class="facts keys">
      ${meanings.map(([keys, does]) => html`<dt>${keys.map((k) => html`<kbd>${k}</kbd> `)}</dt><dd>${does}</dd>`)}
      <dt><kbd>g</kbd> …</dt>
      <dd>${places.map((p) => html`<span class="nowrap"><kbd>${p.key}</kbd> ${p.name}</span> `)}</dd>
    </dl>
  </div>
  <footer><button type="button" onClick=${(/** @type {any} */ e) => e.target.closest('dialog').close()}>Close</button></footer>`);

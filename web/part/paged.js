// A table of which 100 rows are in the document, with the way to the others.
import { html, h, useState } from '../vendor/preact.js';
import { number } from '../app/text.js';

const most = 100; // rows of a page

/** @param {{rows: any[], view: (rows: any[]) => any}} p */
function Paged({ rows, view }) {
  const [at, to] = useState(0);
  const from = Math.max(0, Math.min(at, Math.floor((rows.length - 1) / most) * most)); // there may be fewer rows than before
  return html`
    ${view(rows.slice(from, from + most))}
    ${rows.length > most ? html`
    <div class="more">
    <button type="button" disabled=${from === 0} onClick=${() => to(from - most)}>Earlier</button>
    <span class="muted small num" role="status">
    ${number(from + 1)} … ${number(Math.min(from + most, rows.length))} of ${number(rows.length)}</span>
    <button type="button" disabled=${from + most >= rows.length} onClick=${() => to(from + most)}>Later</button></div>` : null}`;
}

/** @template T @param {T[]} rows @param {(rows: T[]) => any} view @param {string} [key] another one begins at the first row again */
export const paged = (rows, view, key) => h(Paged, { key, rows, view });

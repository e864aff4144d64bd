// The state of a schedule or rule, and what would let it continue: GET …/why.
import { html } from '../vendor/preact.js';
import { panel } from './kit.js';
import { linked } from './linked.js';

/** @typedef {import('../types').Advice} Advice */

/** @param {{summary: string, facts: string[], unblock: Advice[]}} why @param {(a: Advice) => any} control the button that the screen has for an advice; null: none */
export const stands = (why, control) => panel({ title: 'How it stands', children: html`
  <div class="body stack">
    <p class="user" role="status">${linked(why.summary)}</p>
    ${why.facts.length > 0 ? html`<ul class="tight user">${why.facts.map((f) => html`<li>${linked(f)}</li>`)}</ul>` : null}
    ${why.unblock.length > 0 ? html`
      <h3>What would let it go on</h3>
      <ul class="tight user unblock">
        ${why.unblock.map((a) => html`<li>${linked(a.text)}${a.do ? html`<div class="row">${control(a)}</div>` : null}</li>`)}
      </ul>` : null}
  </div>` });

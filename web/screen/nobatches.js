// The screen of batches if no two executions share a label: workflows whose items may be a batch, and how to make one.
import { html } from '../vendor/preact.js';
import { query } from '../app/api.js';
import { line, shortID } from '../app/text.js';
import { empty, since } from '../part/kit.js';

/** @param {{all: import('../types').Execution[]}} p */
export function NoBatches({ all }) {
  const some = all.filter((x) => x.kind === 'workflow').slice(0, 10);
  return empty('No label on two or more', html`
    ${some.length > 0 ? html`
      <p>What a workflow runs for each item of a list is a batch, too:</p>
      <ul class="tight">
        ${some.map((x) => html`
          <li key=${x.id}>
            <a href=${'batches' + query({ of: x.id })}>
              <span class="user">${line(x.action, 120)}</span> <span class="mono">${shortID(x.id)}</span>
            </a> ${since(x.created_at)}
          </li>`)}
      </ul>` : null}
    <p>Submit what belongs together with one label:</p>
    <pre tabindex="0" aria-label="Command">for f in *.py; do pawl eval --label run=17 --label who=$f --cases cases $f; done</pre>`);
}

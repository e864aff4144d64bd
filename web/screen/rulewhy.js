// Why each rule started something for a signal or did not, for each part of its condition: GET …/signals/{id}/why.
import { html } from '../vendor/preact.js';
import { getJSON } from '../app/api.js';
import { useLooked } from '../app/looked.js';
import { line, plain } from '../app/text.js';
import { trouble, loading, panel } from '../part/kit.js';
import { linked } from '../part/linked.js';

/** @typedef {import('../types').RuleClause} Clause */

/** @param {Clause} c */
const clause = (c) => html`
  <li>
    <code class="user">${plain(c.text)}</code> <span class=${c.error ? 'bad' : c.holds ? 'good' : 'late'}>
      ${c.error ? line(c.error, 300) : c.holds ? 'holds' : 'does not hold'}
    </span>
  </li>`;

/** @param {{id: string, known: string}} p known: what is known of its fate, which changes the answer */
export function RuleWhy({ id, known }) {
  const { data, error } = useLooked(async () => /** @type {import('../types').SignalWhy} */ (await getJSON(`api/v1/signals/${encodeURIComponent(id)}/why`)), 30000, [id, known]);
  if (!data) return error ? trouble(error) : loading();
  return panel({ title: 'Why, rule by rule', children: html`
    <div class="body stack">
      <p class="user">${linked(data.summary)}</p>
      ${data.rules.length > 0 ? html`
        <ul class="stack">
          ${data.rules.map((r) => html`
            <li key=${r.rule}>
              <div class="row">
                <a class="user" href=${`rules/${encodeURIComponent(r.rule)}`}>
                  ${line(r.rule, 120)}
                  <span class="muted">@${r.version}</span>
                </a>
              </div>
              <p class="user">${linked(r.summary)}</p>
              ${r.clauses.length > 0 ? html`<ul class="tight">${r.clauses.map(clause)}</ul>` : null}
            </li>`)}
        </ul>` : null}
    </div>` });
}

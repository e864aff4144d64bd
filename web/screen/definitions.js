// The registered workflows and actions.
import { html, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { line } from '../app/text.js';
import { since, trouble, loading, empty, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Definition} Definition */

export function Definitions() {
  useTitle('Definitions');
  const [all, set] = useState(/** @type {{rows: Definition[], cursor: string}|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const load = async (/** @type {string} */ cursor) => {
    try {
      const page = await getJSON('api/v1/definitions' + query({ limit: 100, cursor }));
      set((s) => (cursor && s?.cursor !== cursor ? s : { rows: [...(cursor && s ? s.rows : []), ...(page.definitions || [])], cursor: page.next_cursor || '' }));
      setError(null);
    } catch (e) {
      setError(e);
    }
  };
  useEffect(() => { load(''); }, []);
  return html`
    <div>
      <div class="top"><h1>Definitions</h1><a class="button" href="register">Register …</a></div>
      ${trouble(error)}
      ${!all
        ? (error ? null : loading())
        : html`
          <div class="panel">
            ${all.rows.length === 0 ? empty('Nothing is registered', html`
              <p>A workflow or an action is a YAML document: <a class="button" href="register">Write one here</a> or</p>
              <pre>pawl apply examples/grade.yaml</pre>`)
              : html`
              <div class="scroll">
                <table class="rows">
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Kind</th>
                      <th scope="col" class="right">Version</th>
                      <th scope="col" class="right">Registered</th>
                    </tr>
                  </thead>
                  <tbody>
                    ${all.rows.map((d) => html`
                      <tr key=${d.name}>
                        <td><a class="open-row user" href=${`definitions/${encodeURIComponent(d.name)}`}>${line(d.name, 120)}</a></td>
                        <td class="muted">
                          ${line(d.kind)}
                          ${d.retired ? html` <span class="late">retired</span>` : null}
                          ${d.paused ? html` <span class="late">paused</span>` : null}
                        </td>
                        <td class="right num">${d.version}</td>
                        <td class="right num">${since(d.created_at)}</td>
                      </tr>`)}
                  </tbody>
                </table>
              </div>`}
          </div>
          ${all.cursor
            ? html`<div class="more"><button type="button" onClick=${() => load(all.cursor)}>Show more</button></div>`
            : null}`}
    </div>`;
}

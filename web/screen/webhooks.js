// Webhooks: the endpoints for requests from outside, and the latest refusals.
import { html } from '../vendor/preact.js';
import { getJSON, request, query } from '../app/api.js';
import { useLooked } from '../app/looked.js';
import { line, plain } from '../app/text.js';
import { json } from '../part/json.js';
import { members } from '../part/members.js';
import { since, trouble, loading, panel, scroller, empty, copy, useTitle } from '../part/kit.js';
import { reacts } from './rules.js';

/** @typedef {import('../types').Webhook} Webhook */

/** @param {Webhook} w */
const stands = (w) => (w.paused ? html`<span class="late">Paused</span>` : (w.missing || []).length > 0 ? html`
  <span class="bad">Verifies nothing: no secret</span>` : html`<span class="good">Open</span>`);

export function Webhooks() {
  useTitle('Webhooks');
  const { data, error } = useLooked(() => getJSON('api/v1/webhooks' + query({ limit: 1000 })), 5000, []);
  /** @type {Webhook[]} */
  const all = data?.webhooks || [];
  return html`
    <div>
      <div class="top"><h1>Webhooks</h1></div>
      ${reacts('webhooks')}
      ${trouble(error)}
      ${!data ? (error ? null : loading()) : html`
        <div class="panel">
          ${all.length === 0 ? empty('No webhooks', html`
            <p>A webhook is a YAML document that makes signals of signed requests from outside:</p>
            <pre>pawl apply examples/github.yaml</pre>`)
            : scroller('Webhooks', html`
            <table class="rows">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Path</th>
                  <th scope="col">Signed as</th>
                  <th scope="col">Trigger</th>
                  <th scope="col">State</th>
                </tr>
              </thead>
              <tbody>
                ${all.map((w) => html`
                  <tr key=${w.name}>
                    <td><a class="open-row user" href=${`webhooks/${encodeURIComponent(w.name)}`}>${line(w.name, 120)}</a></td>
                    <td><code class="user">${line(w.path, 120)}</code></td>
                    <td>${line(w.scheme, 40)}</td>
                    <td><code class="user nowrap">${line(w.trigger, 100)}</code></td>
                    <td>${stands(w)}</td>
                  </tr>`)}
              </tbody>
            </table>`)}
        </div>`}
    </div>`;
}

/** @param {{name: string}} p */
export function WebhookScreen({ name }) {
  useTitle(name);
  const { data, error } = useLooked(async () => {
    const text = await request(`api/v1/webhooks/${encodeURIComponent(name)}`).then((r) => r.text());
    return { w: /** @type {Webhook} */ (JSON.parse(text)), raw: members(text).document || '' };
  }, 5000, [name]);
  if (!data) return error ? html`
    <div class="stack">
      <h1>Webhook</h1>
      ${trouble(error)}
      <p><a href="webhooks">All webhooks</a></p>
    </div>` : loading();
  const { w, raw } = data;
  const refused = w.refusals || [];
  return html`
    <div>
      <div class="head">
        <nav class="crumbs" aria-label="Where it belongs"><a href="webhooks">Webhooks</a></nav>
        <div class="title"><h1 class="user">${line(w.name, 120)}<span class="version">@${w.version}</span></h1></div>
        <dl class="line">
          <div><dt>State</dt><dd>${stands(w)}</dd></div>
          <div><dt>Path</dt><dd><code class="user">${line(w.path, 120)}</code></dd></div>
          <div><dt>Signed as</dt><dd>${line(w.scheme, 40)}</dd></div>
          <div>
            <dt>Signals</dt>
            <dd class="user"><a href=${'signals' + query({ source: `webhook:${w.name}` })}>from this webhook</a></dd>
          </div>
        </dl>
      </div>
      <div class="stack">
        ${error ? trouble(error) : null}
        ${(w.missing || []).length > 0 ? html`
          <div class="note bad">
            <p>Requests are answered with 503 until this server has its secrets:</p>
            <ul>${w.missing?.map((m) => html`<li class="user">${plain(m)}</li>`)}</ul>
          </div>` : null}
        ${panel({ title: 'Refused lately', children: refused.length === 0 ? empty('Nothing', html`
          <p>The server that answers this page has refused no request since it started.</p>`)
          : scroller('Refused requests', html`
          <table>
            <thead><tr><th scope="col">When</th><th scope="col">Reason</th><th scope="col">From</th></tr></thead>
            <tbody>
              ${refused.map((r, i) => html`
                <tr key=${i}>
                  <td class="nowrap">${since(r.at)}</td>
                  <td><span class="bad">${line(r.reason, 40)}</span><div class="small user">${plain(r.message)}</div></td>
                  <td class="user nowrap">${line(r.remote || '', 80)}</td>
                </tr>`)}
            </tbody>
          </table>`) })}
        ${panel({ title: 'Document', actions: copy(raw, 'Copy the document'), children: json(raw, 'Document') })}
      </div>
    </div>`;
}

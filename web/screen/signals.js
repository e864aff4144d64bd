// Signals: events from outside, and the result of each.
import { html, h, useState } from '../vendor/preact.js';
import { getJSON, request, query } from '../app/api.js';
import { route, go, withQuery } from '../app/router.js';
import { useLooked } from '../app/looked.js';
import { line, clock, shortID } from '../app/text.js';
import { json } from '../part/json.js';
import { members } from '../part/members.js';
import { FilterField } from '../part/filterfield.js';
import { since, trouble, loading, panel, scroller, empty, copy, idText, useTitle } from '../part/kit.js';
import { lazy } from '../app/lazy.js';
import { reacts, enforcements } from './rules.js';

const RuleWhy = lazy(() => import('./rulewhy.js').then((m) => m.RuleWhy));

/** @typedef {import('../types').Signal} Signal */
/** @typedef {import('../types').Enforcement} Enforcement */

const filters = ['trigger', 'subject', 'source'];

export function Signals() {
  useTitle('Signals');
  const q = route.value.query;
  const [most, setMost] = useState(100);
  const asked = Object.fromEntries(filters.map((name) => [name, q.get(name) || undefined]));
  const { data, error } = useLooked(() => getJSON('api/v1/signals' + query({ ...asked, limit: most })), 3000, [asked, most], true);
  /** @type {Signal[]} */
  const all = data?.signals || [];
  const any = filters.some((name) => q.get(name));
  return html`
    <div>
      <div class="top"><h1>Signals</h1></div>
      ${reacts('signals')}
      <div class="filters" role="search" aria-label="Filter signals">
        ${filters.map((name, i) => html`
          <${FilterField} key=${name} first=${i === 0} wide label=${name} placeholder=${name[0].toUpperCase() + name.slice(1)}
              value=${q.get(name) || ''} set=${(/** @type {string} */ text) => go(withQuery({ [name]: text }), { replace: true })} />`)}
        ${any ? html`<button type="button" class="plain" onClick=${() => go('signals', { replace: true })}>Clear</button>` : null}
      </div>
      ${trouble(error)}
      ${!data ? (error ? null : loading()) : html`
        <div class="panel">
          ${all.length === 0 ? empty(any ? 'Nothing matches' : 'No signals', any ? html`<p>No signal has all of these.</p>` : html`
            <p>A signal says that something has happened. Rules start executions for it:</p>
            <pre>pawl emit alert.fired -d '{"host": "db1"}'</pre>`)
            : scroller('Signals', html`
            <table class="rows">
              <thead>
                <tr>
                  <th scope="col">Trigger</th>
                  <th scope="col">Subject</th>
                  <th scope="col">Key</th>
                  <th scope="col">Source</th>
                  <th scope="col">Accepted</th>
                </tr>
              </thead>
              <tbody>
                ${all.map((s) => html`
                  <tr key=${s.id}>
                    <td>
                      <a class="open-row user" href=${`signals/${s.id}`}>${line(s.trigger, 120)}</a> <span class="mono muted small"
                          title=${s.id}>
                        ${shortID(s.id)}
                      </span>
                    </td>
                    <td class="user">${line(s.subject || '', 80)}</td>
                    <td class="user">${line(s.key || '', 80)}</td>
                    <td class="user">${line(s.source, 80)}${s.replayed ? html` <span class="muted small">a replay</span>` : null}</td>
                    <td class="nowrap">${since(s.at)}</td>
                  </tr>`)}
              </tbody>
            </table>`)}
        </div>
        ${data.next_cursor ? html`
          <div class="more">
            <button type="button" onClick=${() => setMost(Math.min(1000, most + 100))} disabled=${most >= 1000}>Show more</button>
          </div>` : null}`}
    </div>`;
}

/** @param {{id: string}} p */
export function SignalScreen({ id }) {
  useTitle('Signal');
  const { data, error, again } = useLooked(async () => {
    const [text, page] = await Promise.all([request(`api/v1/signals/${encodeURIComponent(id)}`).then((r) => r.text()), getJSON('api/v1/enforcements' + query({ signal: id, limit: 1000 }))]);
    return { s: /** @type {Signal} */ (JSON.parse(text)), raw: members(text), all: /** @type {Enforcement[]} */ (page.enforcements || []) };
  }, 3000, [id], true);
  if (!data) return error ? html`
    <div class="stack">
      <h1>Signal</h1>
      ${trouble(error)}
      <p><a href="signals">All signals</a></p>
    </div>` : loading();
  const { s, raw, all } = data;
  return html`
    <div>
      <div class="head">
        <nav class="crumbs" aria-label="Where it belongs"><a href="signals">Signals</a></nav>
        <div class="title"><h1 class="user">${line(s.trigger, 120)}</h1></div>
        <div class="row">${idText(s.id)}</div>
        <dl class="line">
          <div><dt>Accepted</dt><dd title=${clock(s.at)}>${since(s.at)}</dd></div>
          <div><dt>Source</dt><dd class="user">${line(s.source, 120)}</dd></div>
          ${s.subject ? html`
            <div>
              <dt>Subject</dt>
              <dd class="user">
                <a href=${'signals' + query({ trigger: s.trigger, subject: s.subject })}>${line(s.subject, 120)}</a>
              </dd>
            </div>` : null}
          ${s.key ? html`<div><dt>Key</dt><dd class="user">${line(s.key, 120)}</dd></div>` : null}
          ${s.cause ? html`
            <div><dt>Said by</dt><dd><a class="mono" href=${`executions/${s.cause}`}>${shortID(s.cause)}</a></dd></div>` : null}
          ${(s.rules || []).length > 0 ? html`
            <div><dt>Led here</dt><dd class="user">${s.rules?.map((r) => line(r, 60)).join(' → ')}</dd></div>` : null}
        </dl>
      </div>
      <div class="stack">
        ${error ? trouble(error) : null}
        ${s.replayed ? html`
          <p class="note">The same content came before under another id: it is kept, and no rule was asked about it.</p>` : null}
        ${panel({ title: 'What rules made of it', children: all.length === 0 ? empty(s.state === 'new' ? 'The rules are about to be asked' : 'No rule has started anything for it', null) : enforcements(all, 'rule', again) })}
        ${h(RuleWhy, { id: s.id, known: s.state + JSON.stringify(all) })}
        ${panel({ title: 'Data', actions: copy(raw.data || '', 'Copy the data'), children: json(raw.data || '{}', 'Data') })}
        ${raw.headers ? panel({ title: 'Headers', children: json(raw.headers, 'Headers') }) : null}
      </div>
    </div>`;
}

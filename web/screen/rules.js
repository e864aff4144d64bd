// Rules: the executions that each starts for signals, its latest enforcements, and the switch that pauses it.
import { html, h, useState } from '../vendor/preact.js';
import { Problem, getJSON, post, request, query } from '../app/api.js';
import { useLooked } from '../app/looked.js';
import { line, plain, number, shortID } from '../app/text.js';
import { json } from '../part/json.js';
import { stands as standsWhy } from '../part/stands.js';
import { members } from '../part/members.js';
import { table } from '../part/status.js';
import { since, trouble, loading, panel, scroller, empty, copy, dialog, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Rule} Rule */
/** @typedef {import('../types').Enforcement} Enforcement */

const pages = [['rules', 'Rules'], ['signals', 'Signals'], ['webhooks', 'Webhooks']];

/** The three lists of what reacts to the world. @param {string} at */
export const reacts = (at) => html`
  <nav class="tabs" aria-label="What reacts">
    ${pages.map(([path, word]) => html`<a href=${path} aria-current=${path === at ? 'page' : undefined}>${word}</a>`)}
  </nav>`;

/** @param {string[]|undefined} all */
const triggers = (all) => (all || []).map((t, i) => html`
  ${i > 0 ? ', ' : ''}
  <a href=${'signals' + (t.includes('*') ? '' : query({ trigger: t }))}><code class="user">${line(t, 80)}</code></a>`);

/** @param {Rule} r */
const stands = (r) => (r.paused ? html`
  <span class="late">Paused${r.reason ? html`: <span class="user">${line(r.reason, 80)}</span>` : ''}</span>` : html`
    <span class="good">In force</span>`);

export function Rules() {
  useTitle('Rules');
  const { data, error } = useLooked(() => getJSON('api/v1/rules'), 5000, []);
  /** @type {Rule[]} */
  const all = data?.rules || [];
  return html`
    <div>
      <div class="top"><h1>Rules</h1></div>
      ${reacts('rules')}
      ${trouble(error)}
      ${!data ? (error ? null : loading()) : html`
        <div class="panel">
          ${all.length === 0 ? empty('No rules', html`
            <p>A rule is a YAML document that starts an execution when something has happened:</p>
            <pre>pawl apply examples/alert.yaml</pre>`)
            : scroller('Rules', html`
            <table class="rows">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">On</th>
                  <th scope="col">If</th>
                  <th scope="col">Starts</th>
                  <th scope="col">State</th>
                </tr>
              </thead>
              <tbody>
                ${all.map((r) => html`
                  <tr key=${r.name}>
                    <td><a class="open-row user" href=${`rules/${encodeURIComponent(r.name)}`}>${line(r.name, 120)}</a></td>
                    <td>${triggers(r.on)}</td>
                    <td><code class="user">${line(r.if || '', 100)}</code></td>
                    <td class="user">${line(r.action, 120)}</td>
                    <td>${stands(r)}</td>
                  </tr>`)}
              </tbody>
            </table>`)}
        </div>`}
    </div>`;
}

const fates = table({
  ran: { word: 'started', tone: 'good' }, folded: { word: 'folded into', tone: '' }, held: { word: 'held back', tone: 'late' }, refused: { word: 'refused', tone: 'late' }, failed: { word: 'failed', tone: 'bad' },
});

/** Asks the rule in force once more about signals of which it has started nothing, the oldest first. @param {{all: Enforcement[], again: () => void}} p */
function Retry({ all, again }) {
  const [e] = all;
  const one = all.length === 1 ? html`the signal <span class="mono">${shortID(e.signal)}</span>` : html`${number(all.length)} signals`;
  const [open, setOpen] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const carryOut = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    let failed = null; // a signal to which the rule no longer applies does not stop the others
    for (const k of all.toReversed()) {
      try {
        await post(`api/v1/enforcements/${encodeURIComponent(k.signal)}/${encodeURIComponent(k.rule)}/retry`, '');
      } catch (err) {
        failed = err;
        if (!(err instanceof Problem) || err.status !== 422) break;
      }
    }
    setError(failed);
    setOpen(!!failed);
    setBusy(false);
    again();
  };
  return html`
    <button type="button"
        aria-label=${`Try again: ${line(e.rule, 80)} for ${all.length === 1 ? shortID(e.signal) : `${number(all.length)} signals`}`}
        onClick=${() => { setError(null); setOpen(true); }}>
      Try again
    </button>
    ${dialog({ name: 'Ask the rule once more?', open, close: () => setOpen(false) }, html`
      <form onSubmit=${carryOut}>
        <div class="body">
          <h2>Ask the rule once more?</h2>
          <p>
            The rule <strong class="user">${line(e.rule, 120)}</strong>, as it is in force now, is asked about ${one} again.${' '}
            Where it holds, it starts an execution.
          </p>
          ${trouble(error)}
        </div>
        <footer>
          <button type="button" onClick=${() => setOpen(false)}>Leave it</button>
          <button type="submit" class="primary" disabled=${busy}>Ask it again</button>
        </footer>
      </form>`)}`;
}

/** Enforcements of rules for signals. @param {Enforcement[]} all @param {'rule'|'signal'} shown which of the two names a row shows @param {() => void} again looks once more */
export const enforcements = (all, shown, again) => scroller('Enforcements', html`
  <table>
    <thead>
      <tr>
        <th scope="col">${shown === 'rule' ? 'Rule' : 'Signal'}</th>
        <th scope="col">What became of it</th>
        <th scope="col">When</th>
      </tr>
    </thead>
    <tbody>
      ${all.map((e) => html`
        <tr key=${e.signal + e.rule}>
          <td>
            ${shown === 'rule' ? html`
              <a class="user" href=${`rules/${encodeURIComponent(e.rule)}`}>
                ${line(e.rule, 120)}
                <span class="muted">@${e.version}</span>
              </a>`
              : html`<a class="mono nowrap" href=${`signals/${e.signal}`}>${shortID(e.signal)}</a>`}
          </td>
          <td>
            <span class=${fates[e.state]?.tone || ''}>${fates[e.state]?.word || line(e.state)}</span>
            ${e.execution ? html` <a class="mono nowrap" href=${`executions/${e.execution}`}>${shortID(e.execution)}</a>` : null}
            ${e.reason ? html`
              <div class="small user">
                ${e.reason.path ? html`<code>${line(e.reason.path, 80)}</code> ` : null}
                ${plain(e.reason.message)}
              </div>` : null}
            ${e.state === 'failed' || e.state === 'refused' ? html`<div>${h(Retry, { all: [e], again })}</div>` : null}
          </td>
          <td class="nowrap">${since(e.at)}</td>
        </tr>`)}
    </tbody>
  </table>`);

/** @param {{r: Rule, again: () => void}} p */
function Switch({ r, again }) {
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const title = r.paused ? 'Resume this rule?' : 'Pause this rule?';
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      await post(`api/v1/rules/${encodeURIComponent(r.name)}/${r.paused ? 'resume' : 'pause'}`, r.paused ? '' : reason ? { reason } : {});
      setOpen(false);
      again();
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  };
  return html`
    <div class="row">
      <button type="button" aria-label=${`${r.paused ? 'Resume' : 'Pause'}: ${line(r.name, 120)}`}
          onClick=${() => { setError(null); setReason(''); setOpen(true); }}>
        ${r.paused ? 'Resume' : 'Pause'}
      </button>
      ${dialog({ name: title, open, close: () => setOpen(false) }, html`
        <form onSubmit=${carryOut}>
          <div class="body">
            <h2>${title}</h2>
            <p>
              ${r.paused ? 'It starts executions again, for the signals that come from now on.' : 'It starts nothing until it is resumed. The signals that come meanwhile are kept.'}
            </p>
            ${r.paused ? null : html`
              <div class="field">
                <label for="reason">Reason, shown while it is paused (optional)</label>
                <input id="reason" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} />
              </div>`}
            ${trouble(error)}
          </div>
          <footer>
            <button type="button" onClick=${() => setOpen(false)}>Leave it</button>
            <button type="submit" class="primary" disabled=${busy}>${r.paused ? 'Resume the rule' : 'Pause the rule'}</button>
          </footer>
        </form>`)}
    </div>`;
}

/** @param {{name: string}} p */
export function RuleScreen({ name }) {
  useTitle(name);
  const [most, setMost] = useState(50);
  const { data, error, again } = useLooked(async () => {
    const at = `api/v1/rules/${encodeURIComponent(name)}`;
    const [text, why, page] = await Promise.all([request(at).then((r) => r.text()), getJSON(`${at}/why`), getJSON('api/v1/enforcements' + query({ rule: name, limit: most }))]);
    return { why: /** @type {import('../types').RuleState} */ (why), r: /** @type {Rule} */ (JSON.parse(text)), raw: members(text).document || '', all: /** @type {Enforcement[]} */ (page.enforcements || []), more: !!page.next_cursor };
  }, 5000, [name, most]);
  if (!data) return error ? html`<div class="stack"><h1>Rule</h1>${trouble(error)}<p><a href="rules">All rules</a></p></div>` : loading();
  const { r, raw, all, more, why } = data;
  const failed = all.filter((e) => e.state === 'failed');
  return html`
    <div>
      <div class="head">
        <nav class="crumbs" aria-label="Where it belongs"><a href="rules">Rules</a></nav>
        <div class="title">
          <h1 class="user">${line(r.name, 120)}<span class="version">@${r.version}</span></h1>
          ${h(Switch, { key: String(!!r.paused), r, again })}
        </div>
        <dl class="line">
          <div><dt>State</dt><dd>${stands(r)}</dd></div>
          <div><dt>On</dt><dd>${triggers(r.on)}</dd></div>
          <div>
            <dt>Starts</dt>
            <dd class="user"><a href=${'executions' + query({ action: r.action })}>${line(r.action, 120)}</a></dd>
          </div>
        </dl>
      </div>
      <div class="stack">
        ${error ? trouble(error) : null}
        ${standsWhy(why, (a) => (a.do === 'resume' ? h(Switch, { r, again }) : failed.length > 0 ? h(Retry, { all: failed, again }) : null))}
        ${r.if ? panel({ title: 'If', children: html`<pre class="body user">${plain(r.if)}</pre>` }) : null}
        ${panel({ title: 'What it has made of signals', actions: html`
          <span class="muted small num">${more ? `the latest ${number(all.length)}` : number(all.length)}</span>`,
    children: all.length === 0 ? empty('Nothing yet', html`
          <p>Each signal for which the rule holds is a row here. <a href="signals">A signal</a> says why a rule did not.</p>`)
          : html`
          ${enforcements(all, 'signal', again)}
          ${more && most < 1000
            ? html`
              <div class="more"><button type="button" onClick=${() => setMost(Math.min(1000, most * 2))}>Show more</button></div>`
            : null}` })}
        ${panel({ title: 'Document', actions: copy(raw, 'Copy the document'), children: json(raw, 'Document') })}
      </div>
    </div>`;
}


// The server: its current work, its counts since the start, and whether every row keeps Pawl's invariants.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, apiURL, query } from '../app/api.js';
import { poll } from '../app/stream.js';
import { line, number, bytes, duration, count, figure as figureText } from '../app/text.js';
import { statusPill, statuses, open } from '../part/status.js';
import { linked } from '../part/linked.js';
import { now, since, trouble, loading, panel, scroller, useTitle } from '../part/kit.js';

/** @param {string} name @param {any} value @param {any} [hint] */
const figure = (name, value, hint) => html`
  <div class="gauge">
    <h2 class="name">${name}</h2>
    <div class="value">${value}</div>
    ${hint ? html`<div class="hint">${hint}</div>` : null}
  </div>`;

/** The ends in each minute of the last hour: completed below, all others above. @param {{all: import('../types').Activity}} p */
function activity({ all }) {
  const steps = all.steps.map((s) => ({ at: s.at, good: s.completed || 0, bad: (s.failed || 0) + (s.cancelled || 0) + (s.timed_out || 0) }));
  const most = Math.max(1, ...steps.map((s) => s.good + s.bad));
  const good = steps.reduce((sum, s) => sum + s.good, 0);
  const bad = steps.reduce((sum, s) => sum + s.bad, 0);
  const words = `${count(good + bad, 'execution')} ended on this server in the last hour: ${number(good)} completed, ${number(bad)} otherwise; at most ${number(most * (good + bad > 0 ? 1 : 0))} in a minute`;
  const high = 60;
  const part = (/** @type {number} */ n) => (n === 0 ? 0 : Math.max(1, Math.round((n / most) * high)));
  return panel({
    title: 'Activity',
    children: html`
      <div class="body stack">
        <p>${words}.</p>
        ${good + bad > 0 ? html`
          <svg class="activity" viewBox=${`0 0 ${steps.length * 10} ${high}`} preserveAspectRatio="none" role="img"
              aria-label=${words}>
            ${steps.map((s, i) => {
    const [below, above] = [part(s.good), Math.min(part(s.bad), high - Math.min(part(s.good), high - 1))];
    return html`
              <rect x=${i * 10 + 1} y="0" width="8" height=${high} class="empty-bar" />
              <rect x=${i * 10 + 1} y=${high - below} width="8" height=${below} class="good-bar" />
              <rect x=${i * 10 + 1} y=${high - below - above} width="8" height=${above} class="bad-bar" />`;
  })}
          </svg>` : null}
      </div>`,
  });
}

function Activity() {
  const [all, set] = useState(/** @type {import('../types').Activity|null} */ (null));
  useEffect(() => poll(async () => { set(await getJSON('api/v1/activity?limit=60')); }, 20000), []);
  return all && activity({ all });
}

/** @typedef {import('../types').Verification} Verification */
/** @typedef {import('../types').Invariant} Promised */

/** How a promise stands. @type {Record<string, {status: string, word: string}>} */
const standings = { kept: { status: 'completed', word: 'Kept' }, broken: { status: 'failed', word: 'Broken' }, unknown: { status: 'requested', word: 'Not known' } };

const few = 20; // violations of one promise that are shown at once

/** One promise, and what breaks it. @param {{p: Promised, found: import('../types').Violation[]}} o */
function Promised({ p, found }) {
  const [all, showAll] = useState(false);
  const s = standings[p.state] || standings.unknown;
  return html`
    <tr>
      <td class="num right">${p.invariant}</td>
      <td class="nowrap">${statusPill({ status: s.status, word: p.broken ? `${s.word}, ${number(p.broken)} times` : s.word })}</td>
      <td>${line(p.says, 600)}</td>
      <td class="muted">${line(p.looked_at, 200)}${p.state === 'unknown' ? ', not to the end' : ''}</td>
    </tr>
    ${found.length === 0 ? null : html`
      <tr>
        <td></td>
        <td colspan="3">
          <ul class="tight">
            ${found.slice(0, all ? found.length : few).map((b) => html`
              <li>
                ${b.execution ? html`<a class="mono" href=${`executions/${b.execution}`}>${line(b.execution)}</a> ` : null}
                <span class="user">${linked(b.message)}</span>
              </li>`)}
          </ul>
          ${found.length > few && !all ? html`
            <button type="button" onClick=${() => showAll(true)}>All ${number(found.length)}</button>` : null}
        </td>
      </tr>`}`;
}

/** The result of a verification: each promise, the broken ones first. @param {{v: Verification}} p */
function verified({ v }) {
  const rank = (/** @type {Promised} */ p) => ['broken', 'unknown', 'kept'].indexOf(p.state);
  const all = [...v.promises].sort((a, b) => rank(a) - rank(b) || a.invariant - b.invariant);
  const kept = all.filter((p) => p.state === 'kept').length;
  const times = html`
    <span class="muted">
      read in ${duration(v.seconds * 1000)}, ${since(v.at)}
      ${v.replayed ? `, with ${count(v.replayed.executions, 'history', 'histories')} of ${count(v.replayed.events, 'event')}` : ''}
    </span>`;
  return html`
    ${v.broken.length === 0
      ? html`
        <p class="verified" role="status">
          ${statusPill({ status: 'completed', word: `Every row keeps all ${count(kept, 'promise')} that rows can show` })} ${times}
        </p>`
      : html`
        <p class="verified" role="alert">
          ${statusPill({ status: 'failed', word: `${count(v.broken.length, 'broken promise')}, ${number(kept)} of ${number(all.length)} are kept` })} ${times}
        </p>`}
    ${scroller('Promises', html`
      <table class="promises">
        <thead>
          <tr>
            <th scope="col" class="right">No.</th>
            <th scope="col">State</th>
            <th scope="col">Promise</th>
            <th scope="col">Looked at</th>
          </tr>
        </thead>
        <tbody>
          ${all.map((p) => h(Promised, { key: p.invariant, p, found: v.broken.filter((b) => b.invariant === p.invariant) }))}
        </tbody>
      </table>`)}`;
}

function Promises() {
  const [state, set] = useState(/** @type {{busy: boolean, found: Verification|null, error: unknown}} */ ({ busy: false, found: null, error: null }));
  const [replay, setReplay] = useState(false);
  useEffect(() => { getJSON('api/v1/verify?last=true').then((found) => set((s) => (s.busy || s.found ? s : { ...s, found })), () => {}); }, []);
  const check = async () => {
    set({ ...state, busy: true });
    try {
      set({ busy: false, found: await getJSON(`api/v1/verify${query({ replay })}`), error: null });
    } catch (error) {
      set({ busy: false, found: null, error });
    }
  };
  return panel({
    title: 'Promises', actions: html`
      <label class="check small">
        <input type="checkbox" checked=${replay} onChange=${(/** @type {any} */ e) => setReplay(e.target.checked)} />
        Replay every history, too
      </label>
      <button type="button" onClick=${check} disabled=${state.busy}>
        ${state.busy ? 'Reading every row …' : 'Verify the store'}
      </button>`,
    children: html`
      <div class="body stack">
        <p class="muted">
          Verifying reads every row of the store and compares it with what Pawl promises (docs/invariants.md). On a large store it takes a while, and work goes on meanwhile.
        </p>
        ${trouble(state.error)}
        ${state.found ? verified({ v: state.found }) : null}
      </div>`,
  });
}

export function Server() {
  useTitle('Server');
  const [s, set] = useState(/** @type {import('../types').Stats|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => poll(async () => {
    try {
      set(await getJSON('api/v1/stats'));
      setError(null);
    } catch (e) {
      setError(e);
      throw e;
    }
  }, 3000, true), []);
  if (!s) return html`<div><div class="top"><h1>Server</h1></div>${error ? trouble(error) : loading()}</div>`;
  const counters = Object.entries(s.counters || {}).sort(([a], [b]) => a.localeCompare(b));
  return html`
    <div>
      <div class="top"><h1>Server</h1><a href=${apiURL('openapi.json')} target="_blank" rel="noopener noreferrer">OpenAPI</a></div>
      <div class="stack">
        ${error ? trouble(error) : null}
        <section class="panel" aria-label="At a glance">
          <div class="gauges">
            ${figure('Version', html`<span class="user">${line(s.version, 40)}</span>`)}
            ${figure('Up for', duration(now.value - Date.parse(s.started_at)))}
            ${figure('Workers', number(s.workers), count(s.slots, 'slot'))}
            ${figure('Store', bytes(s.store_bytes))}
            ${figure('Memory', s.rss_bytes ? bytes(s.rss_bytes) : '–', count(s.goroutines, 'goroutine'))}
          </div>
        </section>
        ${panel({ title: 'Under way', children: html`
          <div class="gauges">
            ${statuses.filter(open).map((name) => html`
              <div class="gauge">
                <div>${statusPill({ status: name })}</div>
                <div class="value">${number(s.executions?.[name] || 0)}</div>
              </div>`)}
          </div>` })}
        ${h(Activity, {})}
        ${h(Promises, {})}
        ${panel({ title: 'Counters of this process', actions: html`
          <a href=${apiURL('metrics')} target="_blank" rel="noopener noreferrer" class="small">Metrics for Prometheus</a>`,
    children: scroller('Counters', html`
          <table>
            <thead><tr><th scope="col">Counter</th><th scope="col" class="right">Value</th></tr></thead>
            <tbody>
              ${counters.map(([k, v]) => html`
                <tr><td class="mono user">${line(k)}</td><td class="right num nowrap">${figureText(k, v)}</td></tr>`)}
            </tbody>
          </table>`) })}
      </div>
    </div>`;
}

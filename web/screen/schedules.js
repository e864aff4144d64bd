// Schedules: the next time of each, the results of its past times, and its orders.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, post, request, query } from '../app/api.js';
import { go } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, plain, clock, duration, count, number } from '../app/text.js';
import { json } from '../part/json.js';
import { stands } from '../part/stands.js';
import { members } from '../part/members.js';
import { now, since, trouble, loading, panel, scroller, empty, copy, dialog, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Schedule} Schedule */
/** @typedef {import('../types').Tick} Tick */

/** How far away a moment is. @param {string} at */
const until = (at) => {
  const ms = Date.parse(at) - now.value;
  return html`<time datetime=${at} title=${clock(at)}>${ms > 0 ? `in ${duration(Math.ceil(ms / 1000) * 1000)}` : 'now'}</time>`;
};

/** Whether it will fire, and when. @param {{s: Schedule}} p */
function Next({ s }) {
  if (s.paused_at) return html`<span class="late">Paused${s.reason ? html`: <span class="user">${line(s.reason, 80)}</span>` : ''}</span>`;
  return s.next ? until(s.next) : html`<span class="muted">Never again</span>`;
}

/** @param {Schedule} s */
const when = (s) => (s.when || []).map((w, i) => html`${i > 0 ? ', ' : ''}<code class="user nowrap">${line(w, 80)}</code>`);

export function Schedules() {
  useTitle('Schedules');
  const [all, set] = useState(/** @type {{rows: Schedule[], cursor: string}|null} */ (null));
  const [most, setMost] = useState(100);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => poll(async () => {
    try {
      const page = await getJSON('api/v1/schedules' + query({ limit: most }));
      set({ rows: page.schedules || [], cursor: page.next_cursor || '' });
      setError(null);
    } catch (e) {
      setError(e);
      throw e;
    }
  }, 5000), [most]);
  return html`
    <div>
      <div class="top"><h1>Schedules</h1></div>
      ${trouble(error)}
      ${!all
        ? (error ? null : loading())
        : html`
          <div class="panel">
            ${all.rows.length === 0 ? empty('No schedules', html`
              <p>A schedule is a YAML document that starts an execution at given times:</p>
              <pre>pawl apply examples/nightly.yaml</pre>`)
              : scroller('Schedules', html`
              <table class="rows">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Starts</th>
                    <th scope="col">When</th>
                    <th scope="col">Zone</th>
                    <th scope="col">Next</th>
                    <th scope="col">Last</th>
                  </tr>
                </thead>
                <tbody>
                  ${all.rows.map((s) => html`
                    <tr key=${s.name}>
                      <td><a class="open-row user" href=${`schedules/${encodeURIComponent(s.name)}`}>${line(s.name, 120)}</a></td>
                      <td class="user">${line(s.action, 120)}</td>
                      <td>${when(s)}</td>
                      <td class="muted">${line(s.zone, 60)}</td>
                      <td class="nowrap">${h(Next, { s })}</td>
                      <td class="nowrap">${since(s.last)}</td>
                    </tr>`)}
                </tbody>
              </table>`)}
          </div>
          ${all.cursor && most < 1000
            ? html`
              <div class="more"><button type="button" onClick=${() => setMost(Math.min(1000, most + 100))}>Show more</button></div>`
            : null}`}
    </div>`;
}

/** @typedef {{title: string, says: string, button: string, path: string}} Order */

/** @type {Record<string, Order>} */
const orders = {
  pause: { title: 'Pause this schedule?', says: 'It starts nothing until it is resumed. What it has started goes on.', button: 'Pause the schedule', path: 'pause' },
  resume: { title: 'Resume this schedule?', says: 'It fires at its next time. The times that passed while it was paused are recorded as missed.', button: 'Resume the schedule', path: 'resume' },
  fire: { title: 'Start an execution now?', says: 'It starts one as if a time of the schedule were now, also while the schedule is paused.', button: 'Start it now', path: 'fire' },
};

/** @param {{s: Schedule, again: () => void, resume?: boolean}} p resume: only that */
function Orders({ s, again, resume }) {
  const [name, setName] = useState('');
  const [reason, setReason] = useState('');
  const [late, setLate] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const ask = (/** @type {string} */ n) => {
    setError(null);
    setReason('');
    setLate(false);
    setName(n);
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      const body = name === 'pause' && reason ? { reason } : name === 'resume' && late ? { catch_up: true } : name === 'fire' ? '' : {};
      const answer = await post(`api/v1/schedules/${encodeURIComponent(s.name)}/${name}`, body);
      setName('');
      if (name === 'fire') go(`executions/${answer.execution}`);
      else again();
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  };
  const o = orders[name];
  return html`
    <div class="row">
      ${resume ? null : html`<button type="button" onClick=${() => ask('fire')}>Start now</button>`}
      <button type="button" onClick=${() => ask(s.paused_at ? 'resume' : 'pause')}>${s.paused_at ? 'Resume' : 'Pause'}</button>
      ${dialog({ name: o ? o.title : 'Order', open: !!o, close: () => setName('') }, o ? html`
        <form onSubmit=${carryOut}>
          <div class="body">
            <h2>${o.title}</h2>
            <p>${o.says}</p>
            <p class="muted user">${line(s.name, 120)}</p>
            ${name === 'pause' ? html`
              <div class="field">
                <label for="reason">Reason, shown while it is paused (optional)</label>
                <input id="reason" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} />
              </div>` : null}
            ${name === 'resume'
              ? html`
                <label class="row">
                  <input type="checkbox" checked=${late} onChange=${(/** @type {any} */ e) => setLate(e.target.checked)} />${' '}
                  Make up for the missed times, as its catch_up says
                </label>`
              : null}
            ${trouble(error)}
          </div>
          <footer>
            <button type="button" onClick=${() => setName('')}>Leave it</button>
            <button type="submit" class="primary" disabled=${busy}>${o.button}</button>
          </footer>
        </form>` : null)}
    </div>`;
}

/** @param {Tick} k */
const tickRow = (k) => html`
  <tr key=${k.nominal + k.at}>
    <td class="num nowrap">
      <time datetime=${k.nominal} title=${k.nominal}>${clock(k.nominal)}</time>
      ${k.count > 1 ? html` <span class="muted">to <time datetime=${k.last} title=${k.last}>${clock(k.last)}</time></span>` : null}
    </td>
    <td class="right num">${number(k.count)}</td>
    <td>
      ${k.execution ? html`<a class="mono" href=${`executions/${k.execution}`}>${line(k.execution)}</a>` : html`
        <span class="late">missed</span>`}
    </td>
    <td class="user">
      ${line(k.why.replaceAll('_', ' '), 60)}
      ${k.message ? html`<div class="muted small">${plain(k.message)}</div>` : null}
    </td>
    <td class="nowrap">${since(k.at)}</td>
  </tr>`;

/** @param {{name: string}} p */
export function ScheduleScreen({ name }) {
  useTitle(name);
  const [state, set] = useState(/** @type {{s: Schedule, why: import('../types').ScheduleWhy, raw: string, ticks: Tick[], more: boolean}|null} */ (null));
  const [most, setMost] = useState(50);
  const [asked, ask] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => poll(async () => {
    const at = `api/v1/schedules/${encodeURIComponent(name)}`;
    try {
      const [text, why, page] = await Promise.all([request(at).then((r) => r.text()), getJSON(`${at}/why`), getJSON(`${at}/ticks${query({ limit: most })}`)]);
      set({ why, s: JSON.parse(text), raw: members(text).document || '', ticks: page.ticks || [], more: !!page.next_cursor });
      setError(null);
    } catch (e) {
      setError(e);
      throw e;
    }
  }, 5000), [name, most, asked]);
  if (!state) return error ? html`
    <div class="stack"><h1>Schedule</h1>${trouble(error)}<p><a href="schedules">All schedules</a></p></div>` : loading();
  const { s, why, raw, ticks, more } = state;
  const again = () => ask(asked + 1);
  return html`
    <div>
      <div class="head">
        <nav class="crumbs" aria-label="Where it belongs"><a href="schedules">Schedules</a></nav>
        <div class="title">
          <h1 class="user">${line(s.name, 120)}<span class="version">@${s.version}</span></h1>
          ${h(Orders, { s, again })}
        </div>
        <dl class="line">
          <div>
            <dt>Starts</dt>
            <dd class="user"><a href=${'executions' + query({ action: s.action })}>${line(s.action, 120)}</a></dd>
          </div>
          <div><dt>When</dt><dd>${when(s)}</dd></div>
          <div><dt>Zone</dt><dd>${line(s.zone, 60)}</dd></div>
          <div><dt>Next</dt><dd>${h(Next, { s })}</dd></div>
          ${s.next ? html`<div><dt>On your clock</dt><dd class="num">${clock(s.next)}</dd></div>` : null}
          <div><dt>Last</dt><dd>${since(s.last)}</dd></div>
        </dl>
      </div>
      <div class="stack">
        ${error ? trouble(error) : null}
        ${stands(why, () => h(Orders, { s, again, resume: true }))}
        ${panel({
    title: 'What became of its times', actions: html`
          <span class="muted small">${more ? `the latest ${count(ticks.length, 'row')}` : count(ticks.length, 'row')}</span>`,
    children: ticks.length === 0
      ? empty('None yet', html`<p>Each time that fires or is missed is a row here, the latest first.</p>`)
      : html`
          ${scroller('Times', html`
            <table>
              <thead>
                <tr>
                  <th scope="col">Time, on your clock</th>
                  <th scope="col" class="right">Times</th>
                  <th scope="col">Execution</th>
                  <th scope="col">Why</th>
                  <th scope="col">Decided</th>
                </tr>
              </thead>
              <tbody>${ticks.map(tickRow)}</tbody>
            </table>`)}
          ${more && most < 1000
            ? html`
              <div class="more"><button type="button" onClick=${() => setMost(Math.min(1000, most * 2))}>Show more</button></div>`
            : null}`,
  })}
        ${panel({ title: 'Document', actions: copy(raw, 'Copy the document'), children: json(raw, 'Document') })}
      </div>
    </div>`;
}

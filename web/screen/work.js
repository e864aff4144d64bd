// Waiting work and its workers: queues, concurrency keys, workers.
import { html, h, useState } from '../vendor/preact.js';
import { getJSON } from '../app/api.js';
import { useLooked } from '../app/looked.js';
import { line, clock, number, count } from '../app/text.js';
import { route, withQuery } from '../app/router.js';
import { statusShape } from '../part/status.js';
import { isMine, keepMine, labelOf, mine } from '../part/mine.js';
import { now, since, trouble, loading, panel, scroller, empty, labelChips, useTitle } from '../part/kit.js';
import { PauseOrder } from './pause.js';
import { actionName } from './executions.js';
import { lazy } from '../app/lazy.js';

const KeyLine = lazy(() => import('./line.js').then((m) => m.KeyLine));
const QueueLine = lazy(() => import('./line.js').then((m) => m.QueueLine));

/** @typedef {import('../types').Worker} Worker */

const most = 200; // of each that are asked for

/** How many there are of what is shown. @param {number} n @param {string} one */
const atLeast = (n, one) => count(n, one) + (n < most ? '' : ' or more');

/** What a part of a queue asks of workers. @param {{handler?: string, runtime?: string, worker_labels?: Record<string, string>}} q */
const needs = (q) => html`
  ${q.handler ? html`<span class="chip"><b>handler</b><span class="user">${line(q.handler, 60)}</span></span> ` : null}
  ${q.runtime ? html`<span class="chip"><b>needs</b><span class="user">${line(q.runtime, 80)}</span></span> ` : null}
  ${labelChips(q.worker_labels)}`;

/** What a pause says: by whom, until when and why. @param {import('../types').Pause} [p] */
const pausedChip = (p) => (p ? html` <span class="chip bad">
  <b>paused</b>
  <span class="user">
  ${line([p.by ? `by ${p.by}` : '', p.until ? `until ${clock(p.until)}` : '', p.reason || '']
    .filter((s) => s).join(', '), 200)}</span></span>` : null);

/** A queue has a line for each kind of workers that it asks for; orders are in the first. @param {import('../types').Queue[]} queues @param {string} chosen @param {() => void} again */
const queuesPanel = (queues, chosen, again) => panel({
  title: 'Queues',
  children: queues.length === 0
    ? empty('No queues', html`<p>A queue is here while something waits in it or a worker serves it.</p>`)
    : scroller('Queues', html`
    <table>
    <thead>
    <tr>
    <th scope="col">Queue</th>
    <th scope="col">For workers with</th>
    <th scope="col" class="right">Waiting</th>
    <th scope="col" class="right">Oldest</th>
    <th scope="col" class="right">Workers</th>
    <th scope="col" class="right">Slots</th>
    <th scope="col"><span class="sr">Orders</span></th></tr></thead>
    <tbody>
    ${queues.map((q, i) => html`
    <tr aria-current=${q.queue === chosen ? 'true' : undefined}>
    <td><a class="user" href=${withQuery({ queue: q.queue, key: undefined })}>${line(q.queue, 120)}</a>${pausedChip(q.paused)}</td>
    <td>${needs(q)}</td>
    <td class="right num">${q.ready > 0 ? number(q.ready) : html`<span class="muted">0</span>`}</td>
    <td class="right num nowrap">
    ${q.oldest && !q.oldest.startsWith('0001') ? since(q.oldest) : html`<span class="muted">–</span>`}</td>
    <td class="right num">${q.workers > 0 ? number(q.workers) : q.ready > 0 ? html`<span class="bad">none</span>` : '0'}</td>
    <td class="right num">${number(q.slots)}</td>
    <td class="right">
    ${queues.findIndex((o) => o.queue === q.queue) === i
    ? h(PauseOrder, { key: `${q.queue} ${!!q.paused}`, of: 'queues', name: q.queue, paused: !!q.paused, again }) : null}
    </td></tr>`)}</tbody></table>`),
});

/** @param {import('../types').Key[]} keys @param {string} chosen */
const keysPanel = (keys, chosen) => panel({
  title: 'Concurrency keys', actions: html`<span class="muted small">${atLeast(keys.length, 'key')} in use</span>`,
  children: keys.length === 0
    ? empty('No key is in use', html`<p>A key is here while an execution holds it or waits for it.</p>`)
    : scroller('Concurrency keys', html`
    <table>
    <thead>
    <tr><th scope="col">Key</th><th scope="col" class="right">Held by</th><th scope="col" class="right">Waiting</th></tr></thead>
    <tbody>
    ${keys.map((k) => html`
    <tr aria-current=${k.key === chosen ? 'true' : undefined}>
    <td><a class="user" href=${withQuery({ key: k.key, queue: undefined })}>${line(k.key, 200)}</a></td>
    <td class="right num">${number(k.holders)}</td>
    <td class="right num">${number(k.waiting)}</td></tr>`)}</tbody></table>`),
});

/** @param {Worker} w */
function kinds(w) {
  const all = w.kinds || [];
  const languages = all.filter((k) => k.startsWith('code:')).length;
  const rest = all.filter((k) => !k.startsWith('code:'));
  return html`
    <span class="labels">
    ${rest.slice(0, 10).map((k) => html`<span class="chip user">${line(k, 60)}</span>`)}
    ${languages > 0 ? html`
    <span class="chip" title=${line(all.filter((k) => k.startsWith('code:')).map((k) => k.slice(5)).join(', '), 1000)}>
    ${count(languages, 'language')}</span>` : null}</span>`;
}

const cells = 32; // of one worker in the document

/** A cell for each slot, with what runs in it. @param {Worker} w @param {string} label */
function slots(w, label) {
  const busy = w.executions || [];
  const holds = w.holds || 0;
  const drawn = Math.min(w.slots, cells);
  return html`
    <div class="slots">
    <span class="num nowrap">${holds} of ${w.slots}</span>
    <ul class="cells" aria-label=${`Slots of ${line(w.name, 60)}`}>
    ${busy.slice(0, drawn).map((x) => html`
    <li key=${x.id}>
    <a class=${`cell ${isMine(x.labels, label) ? 'mine' : ''}`} href=${`executions/${x.id}`}
        title=${`${actionName(x)}${isMine(x.labels, label) ? ', yours' : ''}`}
        aria-label=${`${actionName(x)}${isMine(x.labels, label) ? ', yours' : ''}`}>
    ${statusShape(x.status)}</a></li>`)}
    ${Array.from({ length: Math.max(0, drawn - holds) }, (_, i) => html`
    <li key=${i}><span class="cell free"><span class="sr">free</span></span></li>`)}</ul>
    ${w.slots > drawn ? html`<span class="muted small nowrap">${number(drawn)} drawn</span>` : null}</div>`;
}

/** What is left of a lease, as a ring that empties, beside the seconds. @param {Worker} w */
function lease(w) {
  const left = (Date.parse(w.expires_at) - now.value) / 1000;
  if (left <= 0) return html`<span class="bad">${Math.round(-left)} s over</span>`;
  longest = Math.max(longest, left);
  const round = 2 * Math.PI * 6;
  return html`
    <span class="lease">
    <svg viewBox="0 0 16 16" width="14" height="14" class="shape run" aria-hidden="true">
    <circle cx="8" cy="8" r="6" class="line track" />
    <circle cx="8" cy="8" r="6" class="line" transform="rotate(-90 8 8)" stroke-dasharray=${`${round * left / longest} ${round}`} /></svg>
    ${Math.round(left)} s left</span>`;
}
/** Milliseconds until the first lease that is shown ends. @param {{workers?: Worker[], lost?: import('../types').LostWorker[]}} found */
const leasesLeft = ({ workers = [] }) => Math.min(...workers.map((w) => Date.parse(w.expires_at) - Date.now()));
let longest = 1; // that a lease had left, in seconds: the server does not say how long its leases are

/** @param {Worker[]} workers @param {string} label @param {() => void} again */
const workersPanel = (workers, label, again) => panel({
  title: 'Workers', actions: html`
    <span class="muted small">
    ${atLeast(workers.length, 'session')}, ${number(workers.reduce((n, w) => n + (w.holds || 0), 0))} of ${
    count(workers.reduce((n, w) => n + w.slots, 0), 'slot')} busy</span>`,
  children: workers.length === 0 ? empty('No worker is here', html`
    <p>Nothing runs until one comes:</p>
    <pre>pawl worker --server ${new URL('../', document.baseURI).href.replace(/\/$/, '')}</pre>`) : scroller('Workers', html`
      <table>
      <thead>
      <tr>
      <th scope="col">Worker</th>
      <th scope="col">Slots</th>
      <th scope="col">Queues</th>
      <th scope="col">Runs</th>
      <th scope="col" class="right">Since</th>
      <th scope="col" class="right">Lease</th>
      <th scope="col"><span class="sr">Orders</span></th></tr></thead>
      <tbody>
      ${workers.map((w) => html`
      <tr key=${w.session}>
      <td>
      <div class="user">${line(w.name, 120)}${pausedChip(w.paused)}</div>
      <div class="mono muted small user">${line(w.session)}</div></td>
      <td>${slots(w, label)}</td>
      <td>
      <span class="user">${line((w.queues || []).join(', '), 200)}</span>
      ${w.embedded ? html` <span class="chip nowrap">in the server</span>` : null}</td>
      <td>${kinds(w)}${labelChips(w.labels)}</td>
      <td class="right num nowrap">${since(w.started_at)}</td>
      <td class="right num nowrap">${lease(w)}</td>
      <td class="right">
      ${h(PauseOrder, { key: `${w.name} ${!!w.paused}`, of: 'workers', name: w.name, paused: !!w.paused, again })}
      </td></tr>`)}</tbody></table>`, 'wide'),
});

/** @param {import('../types').LostWorker[]} lost */
const lostPanel = (lost) => (lost.length === 0 ? null : panel({
  title: 'Lost lately', actions: html`<span class="muted small">seen by this server within a day</span>`,
  children: scroller('Lost workers', html`
    <table>
    <thead>
    <tr>
    <th scope="col">Worker</th>
    <th scope="col">Queues</th>
    <th scope="col" class="right">Started</th>
    <th scope="col" class="right">Lost</th>
    <th scope="col" class="right">Attempts taken back</th></tr></thead>
    <tbody>
    ${lost.slice(0, 20).map((w) => html`
    <tr key=${w.session}>
    <td><div class="user">${line(w.name, 120)}</div><div class="mono muted small user">${line(w.session)}</div></td>
    <td class="user">${line((w.queues || []).join(', '), 200)}</td>
    <td class="right num nowrap">${since(w.started_at)}</td>
    <td class="right num nowrap">${since(w.lost_at)}</td>
    <td class="right num">${number(w.attempts)}</td></tr>`)}</tbody></table>`),
}));

/** @param {{label: string, keep: (label: string) => void}} p */
function Mine({ label, keep }) {
  const [text, setText] = useState(label);
  const save = (/** @type {Event} */ e) => {
    e.preventDefault();
    keep(labelOf(text));
  };
  return html`
    <form class="row mine-form" onSubmit=${save}>
    <label for="mine" class="small muted">Mine has the label</label>
    <input id="mine" placeholder="user=me" value=${text} spellcheck=${false} aria-describedby="mine-say"
        onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
    <button type="submit">Mark</button>
    <span id="mine-say" class="small muted" role="status">
    ${text.trim() !== '' && labelOf(text) === '' ? 'Write it as name=value.' : label ? 'Marked below; kept in this browser.' : ''}
    </span></form>`;
}

export function Work() {
  useTitle('Work');
  const lines = useLooked(() => Promise.all([getJSON(`api/v1/queues?limit=${most}`), getJSON(`api/v1/keys?limit=${most}`)]), 3000, [], true);
  const served = useLooked(() => getJSON(`api/v1/workers?limit=${most}&executions=true&lost=true`), 3000, [], true, leasesLeft);
  const [label, setLabel] = useState(mine);
  const q = route.value.query;
  const [key, queue] = [q.get('key') || '', q.get('queue') || ''];
  const keep = (/** @type {string} */ l) => { keepMine(l); setLabel(l); };
  const error = lines.error || served.error;
  /** @type {Worker[]} */
  const workers = served.data?.workers || [];
  const names = new Map(workers.map((w) => [w.session, w.name]));
  const [queues, keys] = lines.data || [];
  return html`
    <div>
    <div class="top"><h1>Work</h1>${h(Mine, { label, keep })}</div>
    <div class="stack">
    ${trouble(error)}
    ${queues && served.data ? html`
    ${queuesPanel(queues.queues || [], queue, lines.again)}
    ${queue ? h(QueueLine, { key: queue, queue, mine: label, needs, close: withQuery({ queue: undefined }) }) : null}
    ${keysPanel(keys.keys || [], key)}
    ${key ? h(KeyLine, { key, of: key, mine: label, workers: names, close: withQuery({ key: undefined }) }) : null}
    ${workersPanel(workers, label, served.again)}
    ${lostPanel(served.data.lost || [])}` : error ? null : loading()}</div></div>`;
}

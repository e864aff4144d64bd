// Where work waits and who does it: queues, concurrency keys, workers.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON } from '../app/api.js';
import { route } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, number, count } from '../app/text.js';
import { PauseOrder } from './pause.js';
import { now, since, trouble, loading, panel, scroller, empty, labelChips, useTitle } from '../part/kit.js';

/** @param {import('../types').Queue} q */
const needs = (q) => html`${q.handler ? html`<span class="chip"><b>handler</b><span class="user">${line(q.handler, 60)}</span></span> ` : null}${q.runtime ? html`<span class="chip"><b>needs</b><span class="user">${line(q.runtime, 80)}</span></span> ` : null}${labelChips(q.worker_labels)}`;

/** What a pause says: by whom, until when and why. @param {import('../types').Pause} [p] */
const pausedChip = (p) => (p ? html` <span class="chip bad"><b>paused</b><span class="user">${line([p.by ? `by ${p.by}` : '', p.until ? `until ${new Date(p.until).toLocaleString()}` : '', p.reason || ''].filter((s) => s).join(', '), 200)}</span></span>` : null);

/** A queue has a line for each kind of workers that it asks for: the orders are in the first. @param {import('../types').Queue[]} queues @param {() => void} again */
const queuesPanel = (queues, again) => panel({
  title: 'Queues',
  children: queues.length === 0 ? empty('No queues', html`<p>A queue is here while something waits in it or a worker serves it.</p>`) : scroller('Queues', html`<table>
    <thead><tr><th scope="col">Queue</th><th scope="col">For workers with</th><th scope="col" class="right">Waiting</th><th scope="col" class="right">Oldest</th><th scope="col" class="right">Workers</th><th scope="col" class="right">Slots</th><th scope="col"><span class="sr">Orders</span></th></tr></thead>
    <tbody>${queues.map((q, i) => html`<tr><td class="user">${line(q.queue, 120)}${pausedChip(q.paused)}</td><td>${needs(q)}</td><td class="right num">${q.ready > 0 ? number(q.ready) : html`<span class="muted">0</span>`}</td>
      <td class="right num">${q.oldest && !q.oldest.startsWith('0001') ? since(q.oldest) : html`<span class="muted">–</span>`}</td>
      <td class="right num">${q.workers > 0 ? number(q.workers) : q.ready > 0 ? html`<span class="bad">none</span>` : '0'}</td><td class="right num">${number(q.slots)}</td>
      <td class="right">${queues.findIndex((o) => o.queue === q.queue) === i ? h(PauseOrder, { key: `${q.queue} ${!!q.paused}`, of: 'queues', name: q.queue, paused: !!q.paused, again }) : null}</td></tr>`)}</tbody></table>`),
});

/** @param {import('../types').Key[]} keys @param {string} chosen */
const keysPanel = (keys, chosen) => panel({
  title: 'Concurrency keys', actions: html`<span class="muted small">${count(keys.length, 'key')} in use</span>`,
  children: keys.length === 0 ? empty('No key is in use', html`<p>A key is here while an execution holds it or waits for it.</p>`) : scroller('Concurrency keys', html`<table>
    <thead><tr><th scope="col">Key</th><th scope="col" class="right">Held by</th><th scope="col" class="right">Waiting</th></tr></thead>
    <tbody>${keys.map((k) => html`<tr aria-current=${k.key === chosen ? 'true' : undefined}><td class="user">${k.key === chosen ? html`<strong>${line(k.key, 200)}</strong>` : line(k.key, 200)}</td><td class="right num">${number(k.holders)}</td><td class="right num">${number(k.waiting)}</td></tr>`)}</tbody></table>`),
});

/** @param {import('../types').Worker} w */
function kinds(w) {
  const all = w.kinds || [];
  const languages = all.filter((k) => k.startsWith('code:')).length;
  const rest = all.filter((k) => !k.startsWith('code:'));
  return html`<span class="labels">${rest.slice(0, 10).map((k) => html`<span class="chip user">${line(k, 60)}</span>`)}${languages > 0 ? html`<span class="chip" title=${line(all.filter((k) => k.startsWith('code:')).map((k) => k.slice(5)).join(', '), 1000)}>${count(languages, 'language')}</span>` : null}</span>`;
}

/** @param {import('../types').Worker[]} workers @param {() => void} again */
const workersPanel = (workers, again) => panel({
  title: 'Workers', actions: html`<span class="muted small">${count(workers.length, 'session')}, ${count(workers.reduce((n, w) => n + w.slots, 0), 'slot')}</span>`,
  children: workers.length === 0 ? empty('No worker is here', html`<p>Nothing runs until one comes:</p><pre>pawl worker --server ${new URL('../', document.baseURI).href.replace(/\/$/, '')}</pre>`) : scroller('Workers', html`<table>
    <thead><tr><th scope="col">Worker</th><th scope="col">Queues</th><th scope="col">Runs</th><th scope="col">Labels</th><th scope="col" class="right">Slots</th><th scope="col" class="right">Since</th><th scope="col" class="right">Lease</th><th scope="col"><span class="sr">Orders</span></th></tr></thead>
    <tbody>${workers.map((w) => {
      const left = Math.round((Date.parse(w.expires_at) - now.value) / 1000);
      return html`<tr key=${w.session}><td><div class="user">${line(w.name, 120)}${pausedChip(w.paused)}</div><div class="mono muted small user">${line(w.session)}</div></td><td><span class="user">${line((w.queues || []).join(', '), 200)}</span>${w.embedded ? html` <span class="chip nowrap">in the server</span>` : null}</td>
        <td>${kinds(w)}</td><td>${labelChips(w.labels)}</td><td class="right num">${number(w.slots)}</td><td class="right num nowrap">${since(w.started_at)}</td><td class="right num nowrap">${left > 0 ? `${left} s left` : html`<span class="bad">${-left} s over</span>`}</td>
        <td class="right">${h(PauseOrder, { key: `${w.name} ${!!w.paused}`, of: 'workers', name: w.name, paused: !!w.paused, again })}</td></tr>`;
    })}</tbody></table>`, 'wide'),
});

export function Work() {
  useTitle('Work');
  const [all, set] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [asked, ask] = useState(0);
  const again = () => ask((n) => n + 1);
  useEffect(() => poll(async () => {
    try {
      const [q, k, w] = await Promise.all([getJSON('api/v1/queues?limit=200'), getJSON('api/v1/keys?limit=200'), getJSON('api/v1/workers?limit=200')]);
      set({ queues: q.queues || [], keys: k.keys || [], workers: w.workers || [] });
      setError(null);
    } catch (e) {
      setError(e);
      throw e;
    }
  }, 3000), [asked]);
  return html`<div><div class="top"><h1>Work</h1></div>
    <div class="stack">${trouble(error)}${all ? html`${queuesPanel(all.queues, again)}${keysPanel(all.keys, route.value.query.get('key') || '')}${workersPanel(all.workers, again)}` : error ? null : loading()}</div></div>`;
}

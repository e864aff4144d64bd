// Batches: executions with one label, or of the items of a workflow.
import { html, h, useLayoutEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { lazy } from '../app/lazy.js';
import { route, go, withQuery } from '../app/router.js';
import { useLooked } from '../app/looked.js';
import { line, number } from '../app/text.js';
import { open } from '../part/status.js';
import { trouble, loading, panel, scroller, since, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Execution} Execution */

const Batch = lazy(() => import('./batch.js').then((m) => m.Batch));
const NoBatches = lazy(() => import('./nobatches.js').then((m) => m.NoBatches));

/** Whether of names a batch. @param {string} of */
const named = (of) => /^[^=]+=/.test(of) || /^ex_\w+$/.test(of);

/** The form that names a batch and what it is compared with. @param {{of: string, against: string}} p */
function Which({ of, against }) {
  const [a, setA] = useState(of);
  const [b, setB] = useState(against);
  useLayoutEffect(() => { setA(of); setB(against); }, [of, against]);
  const show = (/** @type {Event} */ e) => {
    e.preventDefault();
    go(withQuery({ of: a.trim(), against: b.trim() || undefined }));
  };
  const wrong = (/** @type {string} */ s) => s.trim() !== '' && !named(s.trim());
  return html`
    <form class="row form-row" role="search" aria-label="Which batch" onSubmit=${show}>
      <div class="field">
        <label for="of">Batch: a label, or the id of a workflow's execution</label>
        <input id="of" aria-keyshortcuts="/" value=${a} placeholder="run=17" spellcheck=${false}
            onInput=${(/** @type {any} */ e) => setA(e.target.value)} aria-invalid=${wrong(a)} />
      </div>
      <div class="field">
        <label for="against">Compared with (optional)</label>
        <input id="against" value=${b} placeholder="run=16" spellcheck=${false}
            onInput=${(/** @type {any} */ e) => setB(e.target.value)} aria-invalid=${wrong(b)} />
      </div>
      <button type="submit" class="primary" disabled=${!named(a.trim()) || wrong(b)}>Show</button>
    </form>`;
}

/** Labels of several of the latest executions: possible batches. */
function Latest() {
  const { data, error } = useLooked(() => getJSON('api/v1/executions' + query({ limit: 500 })), 5000, [], true);
  if (!data) return error ? trouble(error) : loading();
  /** @type {Map<string, {n: number, open: number, bad: number, at: string}>} */
  const all = new Map();
  for (const x of /** @type {Execution[]} */ (data.executions || [])) {
    for (const [k, v] of Object.entries(x.labels || {})) {
      const name = `${k}=${v}`;
      const seen = all.get(name) || { n: 0, open: 0, bad: 0, at: x.created_at || '' };
      all.set(name, { ...seen, n: seen.n + 1, open: seen.open + Number(open(x.status)), bad: seen.bad + Number(x.status === 'failed' || x.status === 'timed_out') });
    }
  }
  const shown = [...all].filter(([, b]) => b.n > 1).slice(0, 50);
  return panel({
    title: 'Labels of the latest executions',
    children: shown.length === 0 ? h(NoBatches, { all: data.executions || [] })
      : scroller('Labels', html`
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Label</th>
              <th scope="col" class="right">Of the latest ${number((data.executions || []).length)}</th>
              <th scope="col" class="right">Under way</th>
              <th scope="col" class="right">Failed</th>
              <th scope="col" class="right">Last</th>
            </tr>
          </thead>
          <tbody>
            ${shown.map(([name, b]) => html`
              <tr key=${name}>
                <td><a class="open-row user" href=${'batches' + query({ of: name })}>${line(name, 160)}</a></td>
                <td class="right num">${number(b.n)}</td>
                <td class="right num">${b.open ? number(b.open) : html`<span class="muted">–</span>`}</td>
                <td class="right num">
                  ${b.bad ? html`<span class="bad">${number(b.bad)}</span>` : html`<span class="muted">–</span>`}
                </td>
                <td class="right nowrap">${since(b.at)}</td>
              </tr>`)}
          </tbody>
        </table>`),
  });
}

export function Batches() {
  const q = route.value.query;
  const [of, against] = [q.get('of') || '', q.get('against') || ''];
  useTitle(of ? `Batch ${of}` : 'Batches');
  return html`
    <div>
      <div class="top">
        <h1 class="user">${of ? html`Batch ${line(of, 100)}` : 'Batches'}</h1>
        ${of
          ? html`
            <a class="button" href="batches">All batches</a>
            ${of.includes('=')
              ? html`<a class="button" href=${'executions' + query({ label: of, tasks: 'true' })}>As a list</a>`
              : html`<a class="button" href=${`executions/${of}`}>The workflow</a>`}`
          : null}
      </div>
      <div class="stack">${h(Which, { of, against })}${named(of) ? h(Batch, { key: of + against, of, against }) : h(Latest, {})}</div>
    </div>`;
}

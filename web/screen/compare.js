// Two executions side by side: the differences of their inputs, ends and outputs.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, request, query } from '../app/api.js';
import { route, go, withQuery } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, duration, bytes, number, count, shortID } from '../app/text.js';
import { tokens } from '../part/json.js';
import { members } from '../part/members.js';
import { diff } from '../part/diff.js';
import { paged } from '../part/paged.js';
import { codeResult } from '../part/coderesult.js';
import { statusPill, look, open, verdictWord, verdictTone } from '../part/status.js';
import { trouble, loading, panel, empty, scroller, since, labelChips, useTitle } from '../part/kit.js';
import { actionName, ran } from './executions.js';

/** @typedef {import('../types').Execution} Execution */
/** @typedef {import('../types').Task} Task */
/** @typedef {{x: Execution, raw: Record<string, string>}} Side */

/** An execution and the text of its members. @param {string} id @returns {Promise<Side>} */
async function load(id) {
  const text = await (await request(`api/v1/executions/${encodeURIComponent(id)}`)).text();
  return { x: JSON.parse(text), raw: members(text) };
}

/** JSON in lines, with the digits that it was sent with. @param {string|undefined} raw */
const inLines = (raw) => (raw === undefined ? '' : tokens(raw).map((t) => t.text).join('') + '\n');

/** A value of a member as it is compared and shown: a text without its quotes. @param {string} raw */
function word(raw) {
  try {
    const v = JSON.parse(raw);
    return typeof v === 'string' ? v : raw;
  } catch {
    return raw;
  }
}

/** Members with their own presentation, or that always differ. */
const apart = new Set(['id', 'input', 'output', 'error', 'summary', 'labels', 'case_verdicts', 'created_at', 'queued_at', 'claimed_at', 'started_at', 'finished_at', 'wall_ms', 'cpu_ms', 'peak_memory_bytes', 'traceparent', 'cancel_order']);

/** What is compared field by field. @param {Side} s @returns {Map<string, {text: string, show?: any, measured?: boolean}>} */
function fieldsOf({ x, raw }) {
  const out = new Map();
  for (const [k, v] of Object.entries(raw)) if (!apart.has(k)) out.set(k.replaceAll('_', ' '), {
    text: word(v),
    show: k === 'status' ? statusPill({ status: x.status }) : k === 'verdict' && x.verdict ? html`
    <span class=${verdictTone(x.verdict)}>${line(verdictWord(x.verdict))}</span>` : undefined });
  for (const [k, v] of Object.entries(x.labels || {})) out.set(`label ${k}`, { text: v });
  if (x.error) out.set('error', { text: `${x.error.code}: ${x.error.message}` });
  if (x.summary) out.set('cases passed', { text: `${x.summary.passed} of ${x.summary.total}` });
  const measured = (/** @type {string} */ name, /** @type {number} */ n, /** @type {(n: number) => string} */ say) => { if (Number.isFinite(n) && n > 0) out.set(name, { text: say(n), measured: true }); };
  measured('waited', Date.parse(x.started_at || '') - Date.parse(x.created_at || ''), duration);
  measured('ran', x.finished_at ? ran(x, 0) : NaN, duration);
  measured('cpu time', x.cpu_ms || 0, duration);
  measured('peak memory', x.peak_memory_bytes || 0, bytes);
  return out;
}

/** @param {{a: Side, b: Side}} p */
function Fields({ a, b }) {
  const [all, setAll] = useState(false);
  const [l, r] = [fieldsOf(a), fieldsOf(b)];
  const names = [...new Set([...l.keys(), ...r.keys()])];
  const differs = (/** @type {string} */ n) => l.get(n)?.text !== r.get(n)?.text;
  const shown = names.filter((n) => all || differs(n) || l.get(n)?.measured || r.get(n)?.measured);
  const cell = (/** @type {ReturnType<typeof fieldsOf>} */ of, /** @type {string} */ n) => { const f = of.get(n); return html`
    <td class="user">${f ? f.show || line(f.text, 400) : html`<span class="muted">–</span>`}</td>`; };
  const parted = names.filter((n) => differs(n) && !l.get(n)?.measured).length;
  return panel({
    title: parted === 0 ? 'The same in every field' : `${count(parted, 'field')} ${parted === 1 ? 'differs' : 'differ'}`,
    actions: html`<button type="button" class="toggle" aria-pressed=${all} onClick=${() => setAll(!all)}>All fields</button>`,
    children: scroller('Fields', html`
      <table class="pairs">
      <thead><tr><th scope="col">Field</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
      <tbody>
      ${shown.map((n) => html`
      <tr key=${n} class=${differs(n) && !l.get(n)?.measured ? 'differs' : ''}>
      <th scope="row" class="user">${line(n, 80)}</th>
      ${cell(l, n)}
      ${cell(r, n)}</tr>`)}</tbody></table>`),
  });
}

/** @param {{a: Side, b: Side}} p */
function Cases({ a, b }) {
  const [all, setAll] = useState(false);
  const [l, r] = [a, b].map((s) => new Map((codeResult(s.x)?.cases || []).map((c) => [c.name, c])));
  if (l.size === 0 || r.size === 0) return null;
  const names = [...new Set([...l.keys(), ...r.keys()])];
  const flipped = names.filter((n) => l.get(n)?.verdict !== r.get(n)?.verdict);
  const worse = flipped.filter((n) => l.get(n)?.verdict === 'ok').length;
  const better = flipped.filter((n) => r.get(n)?.verdict === 'ok').length;
  const rows = all ? names : flipped;
  const verdict = (/** @type {import('../types').CaseResult|undefined} */ c) => (c ? html`
    <span class=${verdictTone(c.verdict)}>${line(verdictWord(c.verdict))}</span> <span class="muted num small">
    ${duration(c.wall_ms || 0)}</span>` : html`<span class="muted">No such case</span>`);
  return panel({
    title: flipped.length === 0 ? `The same verdicts in ${count(names.length, 'case')}` : `${count(flipped.length, 'case')} of ${number(names.length)} ended otherwise`,
    actions: html`
      <span class="small num">
      <span class="good">${number(better)} better</span> · <span class="bad">${number(worse)} worse</span></span>
      <button type="button" class="toggle" aria-pressed=${all} onClick=${() => setAll(!all)}>All cases</button>`,
    children: rows.length === 0 ? null : paged(rows, (shown) => scroller('Cases', html`
      <table class="pairs">
      <thead><tr><th scope="col">Case</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
      <tbody>
      ${shown.map((n) => html`
      <tr key=${n}><th scope="row" class="user">${line(n, 120)}</th><td>${verdict(l.get(n))}</td><td>${verdict(r.get(n))}</td></tr>`)}
      </tbody></table>`), String(all)),
  });
}

/** @param {{a: Side, b: Side}} p */
function Tasks({ a, b }) {
  const [both, set] = useState(/** @type {[Task[], Task[]]|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [all, setAll] = useState(false);
  const at = a.x.finished_at + ' ' + b.x.finished_at;
  useEffect(() => {
    let mine = true;
    Promise.all([a, b].map((s) => getJSON(`api/v1/executions/${s.x.id}/tasks${query({ items: 1 })}`).then((t) => t.tasks || [])))
      .then((found) => { if (mine) set(/** @type {[Task[], Task[]]} */ (found)); }, setError);
    return () => { mine = false; };
  }, [a.x.id, b.x.id, at]);
  if (error) return trouble(error);
  if (!both) return loading();
  const [l, r] = both.map((tasks) => new Map(tasks.map((t) => [t.name, t])));
  const names = [...new Set([...l.keys(), ...r.keys()])];
  const first = names.find((n) => l.get(n)?.status !== r.get(n)?.status);
  const ms = (/** @type {Task|undefined} */ t) => (t?.started_at && t.finished_at ? Date.parse(t.finished_at) - Date.parse(t.started_at) : NaN);
  const longest = Math.max(1, ...names.flatMap((n) => [ms(l.get(n)), ms(r.get(n))]).filter(Number.isFinite));
  const rows = all ? names : names.filter((n) => l.get(n)?.status !== r.get(n)?.status || names.length <= 40);
  const cell = (/** @type {Task|undefined} */ t) => {
    if (!t) return html`<td><span class="muted">No such task</span></td>`;
    const bad = (t.counts?.failed || 0) + (t.counts?.timed_out || 0);
    return html`
      <td>
      <div class="row">
      ${statusPill({ status: t.status })}
      ${Number.isFinite(ms(t)) ? html`<span class="muted num small">${duration(ms(t))}</span>` : null}
      ${t.foreach
        ? html`
        <span class="muted small num">${number(t.ended || 0)} of ${number(t.total || 0)}${bad ? `, ${number(bad)} failed` : ''}</span>`
        : null}</div>
      ${Number.isFinite(ms(t)) ? html`
      <span class="bar thin" aria-hidden="true">
      <i class=${look(t.status).tone} style=${{ width: `${(100 * ms(t)) / longest}%` }}></i></span>` : null}</td>`;
  };
  return html`
    ${first
      ? html`
      <p class="note">
      They part at the task <a class="user" href=${`executions/${a.x.id}/tasks${query({ task: first })}`}>${line(first)}</a>: ${
        l.get(first) ? look(/** @type {Task} */ (l.get(first)).status).word.toLowerCase() : 'absent'} in A, ${
        r.get(first) ? look(/** @type {Task} */ (r.get(first)).status).word.toLowerCase() : 'absent'} in B.</p>`
      : null}
    ${panel({ title: count(names.length, 'task'), actions: names.length > rows.length || all ? html`
    <button type="button" class="toggle" aria-pressed=${all} onClick=${() => setAll(!all)}>All tasks</button>`
      : null,
    children: paged(rows, (shown) => scroller('Tasks', html`
    <table class="pairs">
    <thead><tr><th scope="col">Task</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
    <tbody>
    ${shown.map((n) => html`<tr key=${n}><th scope="row" class="user">${line(n, 120)}</th>${cell(l.get(n))}${cell(r.get(n))}</tr>`)}
    </tbody></table>`), String(all)) })}`;
}

/** A text of the input of code: a string, or an object that has it. @param {any} c */
const textOf = (c) => (typeof c === 'string' ? c : typeof c?.text === 'string' ? c.text : '');

/** @param {{a: Side, b: Side}} p */
function Inputs({ a, b }) {
  const [l, r] = /** @type {any[]} */ ([a.x.input, b.x.input]);
  const code = [l, r].every((v) => v && typeof v === 'object' && typeof v.source === 'string');
  return html`
    <div class="stack">
    ${code ? panel({ title: 'Program', children: diff(l.source, r.source, 'Program') }) : null}
    ${code && (l.stdin || r.stdin) ? panel({ title: 'Standard input', children: diff(textOf(l.stdin), textOf(r.stdin), 'Standard input') }) : null}
    ${panel({ title: 'Input', children: diff(inLines(a.raw.input), inLines(b.raw.input), 'Input',
      a.raw.input === undefined ? 'Neither was given an input' : 'The same input') })}</div>`;
}

/** @param {{a: Side, b: Side}} p */
function Outputs({ a, b }) {
  const [l, r] = [codeResult(a.x), codeResult(b.x)];
  const streams = l && r && ![l, r].some((c) => c.cases && c.cases.length > 0) ? [['stdout', l.stdout || '', r.stdout || ''], ['stderr', l.stderr || '', r.stderr || '']] : [];
  return html`
    <div class="stack">
    ${streams.filter(([, u, v]) => u || v).map(([s, u, v]) => panel({ title: s, children: diff(u, v, s, 'The same, byte for byte') }))}
    ${panel({ title: 'Output', children: diff(inLines(a.raw.output), inLines(b.raw.output), 'Output',
      a.raw.output === undefined ? 'Neither has an output' : 'The same output') })}</div>`;
}

const logged = 1000000; // bytes of a stream that are compared

/** @param {{a: Side, b: Side}} p */
function Logs({ a, b }) {
  const [texts, set] = useState(/** @type {Record<string, [string, string]>|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    let mine = true;
    const read = (/** @type {Side} */ s, /** @type {string} */ stream) => request(`api/v1/executions/${s.x.id}/logs${query({ stream, offset: 0, limit: logged })}`, { accept: 'text/plain' }).then((res) => res.text());
    const streams = ['stdout', 'stderr', 'log'];
    Promise.all(streams.map((s) => Promise.all([read(a, s), read(b, s)])))
      .then((all) => { if (mine) set(Object.fromEntries(streams.map((s, i) => [s, all[i]]))); }, setError);
    return () => { mine = false; };
  }, [a.x.id, b.x.id]);
  if (error) return trouble(error);
  if (!texts) return loading();
  const wrote = Object.entries(texts).filter(([, [l, r]]) => l || r);
  if (wrote.length === 0) return html`
    <div class="panel">${empty('Neither wrote anything', html`<p>No stream of either has a byte.</p>`)}</div>`;
  return html`
    <div class="stack">${wrote.map(([s, [l, r]]) => panel({ title: s, children: diff(l, r, s, 'The same, byte for byte') }))}</div>`;
}

/** @type {Record<string, {word: string, view: (p: {a: Side, b: Side}) => any}>} */
const parts = {
  fields: { word: 'Fields', view: (p) => html`<div class="stack">${h(Cases, p)}${h(Fields, p)}</div>` },
  tasks: { word: 'Tasks', view: (p) => html`<div class="stack">${h(Tasks, p)}</div>` },
  input: { word: 'Input', view: (p) => h(Inputs, p) },
  output: { word: 'Output', view: (p) => h(Outputs, p) },
  logs: { word: 'Logs', view: (p) => h(Logs, p) },
};

/** @param {string} name @param {Side} s */
const side = (name, { x }) => html`
  <section class="panel side-of" aria-label=${name}>
  <h2 class="letter">${name}</h2>
  <div class="tight">
  <div class="row">
  <a class="user" href=${`executions/${x.id}`}>${actionName(x)}</a>
  <span class="mono muted small" title=${x.id}>${shortID(x.id)}</span></div>
  <div class="row">
  ${statusPill({ status: x.status, word: x.verdict && x.verdict !== 'ok' ? verdictWord(x.verdict) : undefined })}
  <span class="muted small">${since(x.created_at)}</span>
  ${labelChips(x.labels)}</div></div></section>`;

/** Candidates for a comparison: the latest executions of the same action. @param {{a: Side}} p */
function Others({ a }) {
  const [rows, set] = useState(/** @type {Execution[]|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [id, setID] = useState('');
  useEffect(() => {
    getJSON('api/v1/executions' + query({ action: a.x.action, limit: 51, top_level: !a.x.workflow }))
      .then((p) => set((p.executions || []).filter((/** @type {Execution} */ x) => x.id !== a.x.id)), setError);
  }, [a.x.id]);
  const to = (/** @type {string} */ b) => withQuery({ b });
  return html`
    <div class="stack">
    <form class="row form-row" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); if (id.trim()) go(to(id.trim())); }}>
    <div class="field">
    <label for="other">Id of the other execution</label>
    <input id="other" class="mono" value=${id} placeholder="ex_…" spellcheck=${false}
        onInput=${(/** @type {any} */ e) => setID(e.target.value)} /></div>
    <button type="submit" class="primary" disabled=${id.trim() === ''}>Compare</button></form>
    ${trouble(error)}
    ${!rows
      ? (error ? null : loading())
      : panel({ title: html`The latest of <span class="user">${line(a.x.action, 80)}</span>`,
        children: rows.length === 0 ? empty('There is no other', html`
      <p>Name one by its id.</p>`)
        : scroller('Executions', html`
      <table class="rows">
      <thead>
      <tr>
      <th scope="col">Execution</th>
      <th scope="col">Status</th>
      <th scope="col">Labels</th>
      <th scope="col" class="right extra">Created</th></tr></thead>
      <tbody>
      ${rows.slice(0, 50).map((x) => html`
      <tr key=${x.id}>
      <td>
      <a class="open-row" href=${to(x.id)}>
      <span class="user">${actionName(x)}</span> <span class="mono muted small">${shortID(x.id)}</span></a></td>
      <td class="nowrap">
      ${statusPill({ status: x.status, word: x.verdict && x.verdict !== 'ok' ? line(verdictWord(x.verdict)) : undefined })}</td>
      <td>${labelChips(x.labels)}</td>
      <td class="right nowrap extra">${since(x.created_at)}</td></tr>`)}</tbody></table>`) })}</div>`;
}

export function Compare() {
  useTitle('Compare');
  const q = route.value.query;
  const [a, b] = [q.get('a') || '', q.get('b') || ''];
  const [state, set] = useState(/** @type {{of: string, a?: Side, b?: Side, error: unknown}} */ ({ of: '', error: null }));
  const of = `${a} ${b}`;
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      if (!a) return false;
      try {
        const [l, r] = await Promise.all([load(a), b ? load(b) : undefined]);
        if (mine) set({ of, a: l, b: r, error: null });
        return open(l.x.status) || (!!r && open(r.x.status));
      } catch (error) {
        if (mine) set((s) => ({ ...(s.of === of ? s : {}), of, error }));
        if (/** @type {any} */ (error).status === 404) return false;
        throw error;
      }
    }, 3000, true);
    return () => {
      mine = false;
      stop();
    };
  }, [of]);
  const top = html`<nav class="crumbs" aria-label="Where it belongs"><a href="executions">Executions</a></nav>`;
  if (!a) return html`<div class="stack">${top}<h1>Compare</h1><p class="muted">Open an execution and choose “Compare”.</p></div>`;
  const s = state.of === of ? state : { of, error: null };
  if (!s.a) return s.error ? html`<div class="stack">${top}<h1>Compare</h1>${trouble(s.error)}</div>` : loading();
  if (!s.b) return html`
    <div class="stack">${top}<h1>Compare with which?</h1>${trouble(s.error)}${side('A', s.a)}${h(Others, { a: s.a })}</div>`;
  const pair = { a: s.a, b: s.b };
  const names = Object.keys(parts).filter((n) => n !== 'tasks' || (pair.a.x.kind === 'workflow' && pair.b.x.kind === 'workflow')).filter((n) => n !== 'logs' || pair.a.x.kind !== 'workflow');
  const at = names.includes(q.get('show') || '') ? /** @type {string} */ (q.get('show')) : names.includes('tasks') ? 'tasks' : 'fields';
  return html`
    <div>
    <div class="head">
    ${top}
    <div class="title">
    <h1>Compare</h1>
    <a class="button" href=${withQuery({ a: b, b: a })}>Swap</a>
    <a class="button" href=${withQuery({ b: undefined })}>With another</a></div>
    <div class="split">${side('A', pair.a)}${side('B', pair.b)}</div></div>
    ${trouble(s.error)}
    <nav class="tabs" aria-label="What is compared">
    ${names.map((n) => html`
    <a key=${n} href=${withQuery({ show: n })} aria-current=${n === at ? 'page' : undefined}>${parts[n].word}</a>`)}</nav>
    <div key=${at + of}>${parts[at].view(pair)}</div></div>`;
}

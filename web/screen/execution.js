// One execution: its head, its orders, and a tab for each question about it.
import { html, h, useEffect, useRef, useState } from '../vendor/preact.js';
import { apiURL, getJSON, request, query } from '../app/api.js';
import { route, go } from '../app/router.js';
import { beside, list } from '../app/neighbours.js';
import { poll } from '../app/stream.js';
import { line, duration, clock } from '../app/text.js';
import { members } from '../part/members.js';
import { statusPill, shownAs, look, open, verdictWord } from '../part/status.js';
import { now, since, idText, labelChips, trouble, loading, useTitle } from '../part/kit.js';
import { later } from '../part/rows.js';
import { actionName } from './executions.js';
import { orderOf, interactive, silent } from './order.js';
import { lazy } from '../app/lazy.js';

/** @typedef {import('../types').Execution} Execution */
/** @typedef {{x: Execution, raw: Record<string, string>, again: () => void, moment: import('../part/replay.js').Moment|null}} Shown moment: when the address asks for an event of the history */

const Data = lazy(() => import('./data.js').then((m) => m.Data));
const Input = lazy(() => import('./data.js').then((m) => m.Input));
const History = lazy(() => import('./history.js').then((m) => m.History));
const Logs = lazy(() => import('./logs.js').then((m) => m.Logs));
const TaskLogs = lazy(() => import('./tasklogs.js').then((m) => m.TaskLogs));
const Why = lazy(() => import('./why.js').then((m) => m.Why));
const Tasks = lazy(() => import('./tasks.js').then((m) => m.Tasks));
const Result = lazy(() => import('./result.js').then((m) => m.Result));
const Rerun = lazy(() => import('./rerun.js').then((m) => m.Rerun), () => null);
const OrderDialog = lazy(() => import('./orderdialog.js').then((m) => m.OrderDialog), () => null);
const PauseOrder = lazy(() => import('./pause.js').then((m) => m.PauseOrder), () => null);
const WhyThen = lazy(() => import('./whythen.js').then((m) => m.WhyThen));
const Replayed = lazy(() => import('./replay.js').then((m) => m.Replayed));

/** @type {Record<string, {word: string, key?: string, view: (p: Shown) => any}>} */
const tabs = {
  why: { word: 'Why', key: 'w', view: (p) => (p.moment ? h(WhyThen, p) : h(Why, p)) },
  tasks: { word: 'Tasks', view: (p) => h(Tasks, p) },
  result: { word: 'Result', view: (p) => h(Result, p) },
  output: { word: 'Output', view: (p) => h(Data, { raw: p.raw.output, name: 'Output', none: open(p.x.status) ? 'It has not ended: there is no output yet.' : 'It ended without an output.' }) },
  logs: { word: 'Logs', key: 'f', view: (p) => h(p.x.kind === 'workflow' ? TaskLogs : Logs, p) },
  history: { word: 'History', view: (p) => h(History, p) },
  input: { word: 'Input', view: (p) => h(Input, p) },
};

/** The tabs that mean something for an execution, the first of them shown first. @param {Execution} x @param {boolean} [past] as it was at an event of its history */
export function tabsOf(x, past = false) {
  const workflow = x.kind === 'workflow';
  const code = x.kind === 'code';
  const going = open(x.status);
  const all = [];
  if (workflow) all.push('tasks');
  if (going) all.push('why');
  if (!going) all.push(code ? 'result' : 'output');
  if (!silent.includes(x.kind || '')) all.push('logs');
  if (past && !going) all.push('why');
  all.push('history', 'input');
  if (going && !workflow && (x.status === 'running' || interactive(x))) all.sort((a, b) => Number(b === 'logs') - Number(a === 'logs'));
  return all;
}

/** Follows one execution: at once, and every two seconds until it has ended. With its ETag an unchanged response has 200 bytes. @param {string} id */
function useExecution(id) {
  const [state, set] = useState(/** @type {{x: Execution|null, raw: Record<string, string>, error: unknown}} */ ({ x: null, raw: {}, error: null }));
  const [round, next] = useState(0);
  const tag = useRef('');
  const going = useRef(true); // whether it still runs, as far as known
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      try {
        const res = await request(`api/v1/executions/${encodeURIComponent(id)}`, tag.current ? { headers: { 'If-None-Match': tag.current } } : {});
        if (!mine) return false;
        if (res.status === 304) {
          set((s) => (s.error ? { ...s, error: null } : s));
          return going.current;
        }
        const text = await res.text();
        if (!mine) return false;
        tag.current = res.headers.get('ETag') || ''; // only together with its text: otherwise the next response could be "unchanged" for a state that was never drawn
        const x = JSON.parse(text);
        set((s) => (s.x && !later(s.x, x) ? s : { x, raw: members(text), error: null }));
        going.current = open(x.status);
        return going.current;
      } catch (error) {
        if (mine) set((s) => ({ ...s, error }));
        if (/** @type {any} */ (error).status === 404) return false;
        throw error;
      }
    }, 2000);
    return () => {
      mine = false;
      stop();
    };
  }, [id, round]);
  return { ...state, again: () => next((n) => n + 1) };
}

/** @param {{x: Execution, input: string, again: () => void}} p input: its text */
function Actions({ x, input, again: look }) {
  const [{ order, asked }, set] = useState(/** @type {{order: import('./order.js').Order|null, asked: boolean}} */ ({ order: null, asked: false }));
  const now = orderOf(x);
  return html`
    <div class="row">
    ${x.inquiry && x.kind === 'workflow' ? html`<a class="button primary" href=${`questions/${x.inquiry}`}>Answer it</a>` : null}
    ${open(x.status) ? null : html`
    <a class="button" href=${'compare' + query({ a: x.id })}>Compare</a>
    <a class="button" href=${'new' + query({ from: x.id })}>Run with changes</a>`}
    ${open(x.status) || x.workflow ? null : html`
    <a class="button" href=${apiURL(`api/v1/executions:export?id=${x.id}`)} download=${`${x.id}.pawl`}>Download archive</a>`}
    ${!open(x.status) && x.kind === 'workflow' ? h(Rerun, { key: x.id, x, input }) : null}
    ${open(x.status) && x.kind === 'workflow' && !x.cancel_order ? h(PauseOrder, { key: `${x.id} ${!!x.paused}`, of: 'executions', name: x.id, paused: !!x.paused, again: look }) : null}
    <button type="button" class=${now.word === 'Kill' ? 'danger' : ''} aria-keyshortcuts=${open(x.status) ? 'c' : 'r'}
        onClick=${() => set({ order: now, asked: true })}>
    ${now.word}</button>
    ${asked ? h(OrderDialog, { id: x.id, name: actionName(x), order, close: () => set({ order: null, asked }),
      done: (/** @type {Execution} */ y) => (y.id === x.id ? look() : go(`executions/${y.id}`)) }) : null}</div>`;
}

/** How long it has waited and run, as people ask for it. @param {{x: Execution}} p */
function Times({ x }) {
  const t = now.value;
  const end = x.finished_at ? Date.parse(x.finished_at) : t;
  const created = Date.parse(x.created_at || '');
  return html`<div><dt>Created</dt><dd>${since(x.created_at)}</dd></div>
    ${x.started_at ? html`<div><dt>Waited</dt><dd class="num">${duration(Date.parse(x.started_at) - created)}</dd></div>
      <div><dt>${x.finished_at ? 'Took' : 'Running for'}</dt><dd class="num">${duration(end - Date.parse(x.started_at))}</dd></div>`
      : html`<div><dt>${x.finished_at ? 'Waited' : 'Waiting for'}</dt><dd class="num">${duration(end - created)}</dd></div>`}`;
}

/** Its neighbours: in the list from which it was opened, or else among the executions of its task. @param {{x: Execution, at: string}} p at: the tab */
function Beside({ x, at }) {
  const [same, set] = useState(/** @type {string[]} */ ([]));
  const known = list.value.ids.includes(x.id);
  useEffect(() => {
    let mine = true;
    if (!known && x.workflow) {
      getJSON(`api/v1/executions/${x.workflow}/tasks${query({ items: 1000 })}`).then((/** @type {import('../types').Tasks} */ t) => {
        const all = t.tasks.find((o) => o.name === x.task)?.executions || [];
        if (mine) set([...all].sort((a, b) => a.index - b.index).map((e) => e.id));
      }, () => {}); // without them only the links are missing
    }
    return () => { mine = false; };
  }, [x.id, known]);
  const { before, after } = beside(known ? list.value.ids : same, x.id);
  if (!before && !after) return null;
  const step = (/** @type {string} */ id, /** @type {string} */ word, /** @type {string} */ key, /** @type {string} */ d) => (id
    ? html`
      <a class="step" href=${`executions/${id}/${at}`} aria-label=${word} title=${`${word} (${key})`} aria-keyshortcuts=${key}>
      <svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${d} class="line" /></svg></a>`
    : html`
      <span class="step" aria-hidden="true">
      <svg class="shape" viewBox="0 0 16 16" width="16" height="16"><path d=${d} class="line" /></svg></span>`);
  return html`
    <span class="beside">
    ${step(before, 'The one before', '[', 'M10 3.5 5.5 8l4.5 4.5')}
    ${step(after, 'The one after', ']', 'M6 3.5 10.5 8 6 12.5')}</span>`;
}

/** How executions name the one that they run again, and what they are called. @type {[string, string][]} */
const kinds = [['retry_of', 'Retries'], ['rerun_of', 'Reruns']];

/** The executions that run an ended one again, where there are any: the latest by its state, the others in a list. @param {{id: string}} p */
function RunAgain({ id }) {
  const [found, set] = useState(/** @type {{by: string, word: string, last: Execution, more: boolean}[]} */ ([]));
  useEffect(() => {
    let mine = true;
    Promise.all(kinds.map(async ([by, word]) => {
      const page = /** @type {import('../types').ExecutionPage} */ (await getJSON('api/v1/executions' + query({ [by]: id, limit: 2 })));
      return { by, word, last: page.executions[0], more: page.executions.length > 1 };
    })).then((all) => { if (mine) set(all.filter((k) => k.last)); }, () => {}); // only the links are missing then
    return () => { mine = false; };
  }, [id]);
  return found.map(({ by, word, last, more }) => html`
    <div key=${by}>
    <dt>${word}</dt>
    <dd>
    <a class="mono" href=${`executions/${last.id}`}>${last.id}</a> <span class="muted">${look(last.status).word}</span>
    ${more ? html`, <a href=${'executions' + query({ [by]: id, tasks: 'true' })}>all</a>` : null}</dd></div>`);
}

/** @param {{x: Execution, raw: Record<string, string>, again: () => void, at: string}} p */
const head = ({ x, raw, again, at }) => html`
  <div class="head">
  <nav class="crumbs" aria-label="Where it belongs">
  <a href=${list.value.address} aria-keyshortcuts="Escape">Executions</a>
  ${x.workflow ? html`
  <span aria-hidden="true">/</span>
  <a class="mono" href=${`executions/${x.workflow}`}>${line(x.workflow)}</a>
  <span aria-hidden="true">/</span>
  <span class="user">${line(x.task)}${x.index ? `[${x.index}]` : ''}</span>` : null}
  ${h(Beside, { key: x.id, x, at })}</nav>
  <div class="title">
  <h1 class="user">${line(x.action, 120)}${x.version ? html`<span class="version">@${x.version}</span>` : null}</h1>
  ${h(Actions, { x, input: raw.input || '', again })}</div>
  <div class="row">
  ${statusPill({ status: shownAs(x), word: x.verdict && x.verdict !== 'ok' ? verdictWord(x.verdict) : undefined })}
  ${idText(x.id)}
  ${labelChips(x.labels, (k, v) => 'executions' + query({ label: `${k}=${v}` }))}</div>
  <dl class="line">
  ${h(Times, { x })}
  <div><dt>Attempt</dt><dd class="num">${x.attempt}${x.retry?.max_attempts ? ` of ${x.retry.max_attempts}` : ''}</dd></div>
  ${x.alias ? html`<div><dt>By alias</dt><dd class="user">${line(x.alias)}</dd></div>` : null}
  ${x.worker ? html`<div><dt>Worker</dt><dd class="mono cut">${line(x.worker)}</dd></div>` : null}
  ${x.queue && x.queue !== 'default' ? html`<div><dt>Queue</dt><dd class="user">${line(x.queue)}</dd></div>` : null}
  ${x.key
    ? html`<div><dt>Key</dt><dd class="user">${line(x.key, 80)}${x.key_limit ? ` (at most ${x.key_limit})` : ''}</dd></div>`
    : null}
  ${x.rerun_of
    ? html`<div><dt>Rerun of</dt><dd><a class="mono" href=${`executions/${x.rerun_of}`}>${line(x.rerun_of)}</a></dd></div>`
    : null}
  ${x.retry_of
    ? html`<div><dt>Retry of</dt><dd><a class="mono" href=${`executions/${x.retry_of}`}>${line(x.retry_of)}</a></dd></div>`
    : null}
  ${open(x.status) ? null : h(RunAgain, { key: x.id, id: x.id })}
  ${x.given_by ? html`
  <div>
  <dt>${x.rerun_of ? 'Outputs given by' : 'Did not run: output given by'}</dt>
  <dd class="user">${line(x.given_by, 200)}</dd></div>` : null}
  ${x.only ? html`<div><dt>Only</dt><dd class="user">${line(x.only.join(', '), 200)}</dd></div>` : null}
  ${x.reused_of ? html`
  <div>
  <dt>${x.cached ? 'Cached: outcome of' : 'Did not run: outcome of'}</dt>
  <dd><a class="mono" href=${`executions/${x.reused_of}`}>${line(x.reused_of)}</a></dd></div>` : null}
  ${x.priority ? html`<div><dt>Priority</dt><dd class="num">${x.priority}</dd></div>` : null}</dl>
  ${x.error && at !== 'result' ? html`
  <p class=${`note user ${x.status === 'timed_out' ? 'late' : x.status === 'cancelled' ? '' : 'bad'}`}>
  <strong>${line(x.error.code, 80)}</strong>: ${line(x.error.message, 2000)}</p>` : null}
  ${x.paused ? html`
  <p class="note late user">
  <strong>Paused</strong>
  ${x.paused.by ? ` by ${line(x.paused.by, 200)}` : ''} since ${clock(x.paused.at)}
  ${x.paused.until ? `, until ${clock(x.paused.until)}` : ''}
  ${x.paused.reason ? `: ${line(x.paused.reason, 2000)}` : ''}. It starts no tasks
  ${x.paused.timers === 'stop' ? ', and its timers stand still' : ''}.</p>` : null}
  ${x.cancel_order
    ? html`
    <p class="note late user">
    Ordered to end as ${line(look(x.cancel_order.as).word.toLowerCase())} at ${clock(x.cancel_order.at)}
    ${x.cancel_order.reason ? `: ${line(x.cancel_order.reason)}` : ''}. ${x.cancel_order.cleanup_until
      ? `It is cleaning up, until ${clock(x.cancel_order.cleanup_until)} at the latest: the tasks that run are those of its clean-up, and a second cancel ends them.`
      : 'Its worker has not confirmed it yet.'}</p>`
    : null}</div>`;

/** @param {{id: string}} p */
export function Execution({ id }) {
  const { x, raw, error, again } = useExecution(id);
  const seq = Math.floor(Number(route.value.query.get('at'))) || 0;
  useTitle(x ? `${actionName(x)} ${look(shownAs(x)).word.toLowerCase()}` : 'Execution');
  if (!x) return error ? html`
    <div class="stack"><h1>Execution</h1>${trouble(error)}<p><a href="executions">All executions</a></p></div>` : loading();
  const names = tabsOf(x, seq > 0);
  const kept = query({ at: seq > 0 ? seq : undefined });
  const asked = route.value.parts[2];
  const at = asked && Object.hasOwn(tabs, asked) ? asked : names[0];
  const all = names.includes(at) ? names : [...names, at];
  return html`
    <div>
    ${head({ x, raw, again, at })}
    ${error ? trouble(error) : null}
    <nav class="tabs" aria-label="About this execution">
    ${all.map((n) => html`
    <a key=${n} href=${`executions/${x.id}/${n}${kept}`} aria-current=${n === at ? 'page' : undefined}
        aria-keyshortcuts=${n === at ? undefined : tabs[n].key}>
    ${tabs[n].word}</a>`)}</nav>
    ${seq > 0
      ? h(Replayed, { key: x.id, id: x.id, growing: open(x.status), at: seq, tasks: x.kind === 'workflow',
        view: (/** @type {Shown['moment']} */ moment) => html`
      <div key=${at}>${tabs[at].view({ x, raw, again, moment })}</div>` })
      : html`<div key=${at}>${tabs[at].view({ x, raw, again, moment: null })}</div>`}</div>`;
}

// The tasks of a workflow: as a graph and as a list, and the executions of the one that is chosen.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { follow } from '../app/stream.js';
import { route, withQuery } from '../app/router.js';
import { line, clock, duration, number, count } from '../app/text.js';
import { taskAt } from '../part/replay.js';
import { tasksAfter } from '../part/taskchanges.js';
import { Graph, inPixels, countBar } from '../part/graph.js';
import { taskFilter } from '../part/taskfilter.js';
import { paged } from '../part/paged.js';
import { statusPill, statusShape, shownAs, look, open } from '../part/status.js';
import { now, trouble, loading, panel, empty } from '../part/kit.js';
import { lazy } from '../app/lazy.js';

/** @typedef {import('../types').Task} Task */

const ByTask = lazy(() => import('./bytask.js').then((m) => m.ByTask));
const Items = lazy(() => import('./items.js').then((m) => m.Items));
const ItemGrid = lazy(() => import('./itemgrid.js').then((m) => m.ItemGrid));
const ByWorker = lazy(() => import('./byworker.js').then((m) => m.ByWorker));

const replayedItems = 1000; // and where their past is shown
const items = 300; // executions of one foreach task that are asked for

/** @param {string|undefined} from @param {string|undefined} to */
const took = (from, to) => (from ? duration((to ? Date.parse(to) : now.value) - Date.parse(from)) : '');

/** Whether it can have more executions than one: items, or rounds. @param {Task} t */
const many = (t) => !!t.foreach || !!t.repeat;

/** @param {Task} t */
function progress(t) {
  if (t.repeat) return t.created ? `round ${number(t.created)} of at most ${number(t.repeat)}` : `at most ${count(t.repeat, 'round')}`;
  if (!t.foreach) return '';
  const total = t.total ?? t.created ?? 0;
  if (!total) return t.status === 'skipped' ? '' : 'for each item';
  const bad = (t.counts?.failed || 0) + (t.counts?.timed_out || 0);
  return `${number(t.ended || 0)} of ${count(total, 'item')}${bad ? `, ${number(bad)} failed` : ''}`;
}

/** @param {Task} t */
const sub = (t) => progress(t) || [line(t.action, 60), t.cached ? 'cached' : '', took(t.started_at, t.finished_at)].filter(Boolean).join(' · ');

/** An execution's place among those of its task. @param {Task} t @param {import('../types').TaskExecution} e */
const nth = (t, e) => (t.repeat ? `Round ${e.index + 1}` : `Item ${e.index}`);

/** How a task is shown: one of a single execution by what that waits for. @param {Task} t */
const seen = (t) => shownAs({ status: t.status, kind: many(t) ? undefined : t.executions?.[0]?.kind });

/** When the next round begins; '' while there is none that waits. @param {Task} t */
function next(t) {
  const e = (t.executions || []).at(-1);
  return t.repeat && e && open(e.status) && !e.started_at && e.wake_at && Date.parse(e.wake_at) > now.value ? clock(e.wake_at) : '';
}

/** The task that is shown when none is chosen: one that failed, else one that is under way, else the last. @param {Task[]} tasks */
const telling = (tasks) => tasks.find((t) => t.status === 'failed' || t.status === 'timed_out') || tasks.find((t) => open(t.status)) || tasks.at(-1);

/** The layout of a registered definition; null until it is known, and where the server has none. @param {import('../types').Execution} x */
function useLayout(x) {
  const [layout, set] = useState(/** @type {import('../part/graph.js').Layout|null} */ (null));
  useEffect(() => {
    let mine = true;
    if (x.version) {
      getJSON(`api/v1/definitions/${encodeURIComponent(x.action)}/graph${query({ version: x.version })}`)
        .then((l) => { if (mine && Array.isArray(l.nodes)) set(inPixels(l)); }, () => {});
    }
    return () => { mine = false; };
  }, [x.action, x.version]);
  return layout;
}

/** @param {{t: Task, x: import('../types').Execution, past: boolean}} p past: it is shown as it was at an event */
function Chosen({ t, x, past }) {
  const table = !past && many(t) && route.value.query.has('items');
  const all = t.executions || [];
  const one = all.length === 1 && !many(t) ? all[0] : null;
  return panel({
    title: html`<span class="user">${line(t.name)}</span>`,
    actions: html`
      ${statusPill({ status: seen(t) })}
      <span class="muted small">${took(t.started_at, t.finished_at)}</span>
      ${one ? html`<a class="button" href=${`executions/${one.id}`}>Open</a>` : null}
      ${t.foreach && all.length > 0
        ? html`
        <a class="button"
            href=${'batches' + query({ of: x.id, show: (t.counts?.failed || 0) + (t.counts?.timed_out || 0) > 0 ? 'failing' : undefined })}>
        Matrix</a>`
        : null}
      ${many(t) && all.length > 0 && !past ? html`
      <a class="button toggle" role="button" aria-pressed=${table}
          href=${withQuery({ items: table ? undefined : 'all', longest: undefined })}>
      As a table</a>` : null}
      ${many(t) && all.length > 0 ? html`<a class="button" href=${'executions' + query({ workflow: x.id })}>List all</a>` : null}`,
    children: html`
      <div class="body stack">
      <dl class="facts">
      <dt>Action</dt>
      <dd class="user">${line(t.action)}</dd>
      ${(t.needs || []).length > 0 ? html`
      <dt>Needs</dt>
      <dd class="row">
      ${(t.needs || []).slice(0, 50).map((n) => html`<a class="user" href=${withQuery({ task: n })}>${line(n)}</a>`)}</dd>` : null}
      ${many(t) ? html`<dt>${t.repeat ? 'Rounds' : 'Items'}</dt><dd class="num">${progress(t)}</dd>` : null}
      ${next(t) ? html`<dt>Next</dt><dd class="num">at ${next(t)}</dd>` : null}
      ${one && one.attempt > 1 ? html`<dt>Attempt</dt><dd class="num">${one.attempt}</dd>` : null}
      ${t.cached ? html`
      <dt>Cached</dt>
      <dd class="num">${t.foreach ? `${number(t.cached)} of ${number(t.created || 0)}` : 'its outcome was kept; it did not run'}</dd>`
        : null}
      ${one ? html`<dt>Execution</dt><dd><a class="mono user" href=${`executions/${one.id}`}>${line(one.id)}</a></dd>` : null}</dl>
      ${t.error ? html`<p class="note bad user"><strong>${line(t.error.code)}</strong>: ${line(t.error.message, 1000)}</p>` : null}
      ${many(t) && t.counts ? html`
      <div class="tight">
      ${countBar(t.counts, t.total || t.created || 0)}
      <div class="legend">
      ${Object.entries(t.counts).map(([s, n]) => (past ? html`
      <span class=${`status ${look(s).tone}`}>${statusShape(s)}${number(n)} ${look(s).word.toLowerCase()}</span>`
        : html`
      <a class=${`status ${look(s).tone}`} href=${withQuery({ task: t.name, items: s })}>
      ${statusShape(s)}
      ${number(n)} ${look(s).word.toLowerCase()}</a>`))}</div></div>` : null}
      ${table || all.length === 0
        ? null
        : t.more && !past ? h(ItemGrid, { key: t.name, id: x.id, task: t })
        : many(t) ? html`
        <div class="cells" role="list" aria-label=${t.repeat ? 'Rounds' : 'Items'}>
        ${all.slice(0, items).map((e) => html`
        <span role="listitem" key=${e.id}>
        <a class=${`cell ${look(shownAs(e)).tone}`} href=${`executions/${e.id}`}
            aria-label=${`${nth(t, e)}: ${look(shownAs(e)).word}`}
            title=${`${nth(t, e)}: ${look(shownAs(e)).word}${e.started_at ? `, ${took(e.started_at, e.finished_at)}` : ''}`}>
        ${statusShape(shownAs(e))}</a></span>`)}</div>
        ${all.length > items
          ? html`<p class="muted small">Here are the first ${number(items)} of ${number(all.length)}.</p>`
          : t.more ? html`
          <p class="muted small">Here are the open ones and the latest, ${number(all.length)} of ${number(t.created || 0)}.</p>`
          : null}`
        : null}</div>
      ${table ? h(Items, { key: t.name, id: x.id, task: t }) : null}`,
  });
}

/** @param {{tasks: Task[], chosen: string, key: string}} p */
const list = ({ tasks, chosen, key }) => paged(tasks, (shown) => html`
  <div class="scroll">
  <table class="rows">
  <thead>
  <tr>
  <th scope="col">Task</th>
  <th scope="col">Status</th>
  <th scope="col" class="extra">Action</th>
  <th scope="col" class="extra">Needs</th>
  <th scope="col">Items, rounds</th>
  <th scope="col" class="right">Took</th></tr></thead>
  <tbody>
  ${shown.map((t) => html`
  <tr key=${t.name} class=${chosen === t.name ? 'chosen' : ''}>
  <td><a class="open-row user" href=${withQuery({ task: t.name })}>${line(t.name, 120)}</a></td>
  <td>${statusPill({ status: seen(t) })}</td>
  <td class="muted user extra">${line(t.action, 80)}</td>
  <td class="muted user extra">${line((t.needs || []).join(', '), 120)}</td>
  <td class="num nowrap">${progress(t)}</td>
  <td class="right num nowrap">${took(t.started_at, t.finished_at)}</td></tr>`)}</tbody></table></div>`, key);

/** @param {{x: import('../types').Execution, tasks: Task[], match: ((t: Task) => boolean)|undefined, fields: any, chosen: string, then: number}} p match and fields: of the filter; then: the moment that is shown, or 0 */
function Timeline({ x, tasks, match, fields, chosen, then }) {
  const by = route.value.query.get('by') === 'worker' ? 'worker' : 'task';
  return html`
    <div class="body row" role="group" aria-label="Rows of the timeline">
    ${['task', 'worker'].map((b) => html`
    <a key=${b} class="button toggle" role="button" aria-pressed=${by === b}
        href=${withQuery({ by: b === 'task' ? undefined : b, span: undefined })}>
    By ${b}</a>`)}</div>
    ${by === 'worker' ? h(ByWorker, { x, then }) : html`${fields}${h(ByTask, { id: x.id, tasks, match, chosen, then })}`}`;
}

/** @param {import('./execution.js').Shown} p */
export function Tasks({ x, again, moment }) {
  const [state, set] = useState(/** @type {import('../types').Tasks|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const laid = useLayout(x);
  const replayed = moment !== null;
  useEffect(() => follow(`api/v1/executions/${x.id}/tasks${query({ items: replayed ? replayedItems : items, changes: true })}`, (event, data) => {
    set((s) => tasksAfter(s, event, data));
    if (event === 'end') again();
  }, { failed: setError }), [x.id, replayed]);
  const tasks = moment ? (state?.tasks || []).map((t) => taskAt(t, moment)) : state?.tasks || [];
  const then = moment ? Date.parse(moment.event.at) : 0;
  if (error) return trouble(error);
  if (!state) return loading();
  const byName = new Map(tasks.map((t) => [t.name, t]));
  const layout = laid && laid.nodes.every((n) => byName.has(n.task)) ? laid : null;
  const task = byName.get(route.value.query.get('task') || '') || telling(tasks);
  const chosen = task?.name || '';
  const narrow = matchMedia('(max-width: 760px)').matches;
  const view = route.value.query.get('view') || (narrow || !layout ? 'list' : 'graph');
  const of = (/** @type {string} */ n) => /** @type {Task} */ (byName.get(n));
  const { match, found, fields } = taskFilter(tasks);
  const ended = tasks.filter((t) => t.finished_at || t.status === 'skipped').length;
  return html`
    <div class="stack">
    ${panel({
      title: count(tasks.length, 'task'),
      actions: html`
    <span class="muted small num">${number(ended)} ended</span>
    ${moment || tasks.length === 0 ? null : html`<a class="button toggle" href=${withQuery({ at: '1' })}>Replay</a>`}
    <span class="row" role="group" aria-label="Show as">
    ${(layout ? ['graph', 'list', 'timeline'] : ['list', 'timeline']).map((v) => html`
    <a key=${v} class="button toggle" role="button" aria-pressed=${view === v} href=${withQuery({ view: v })}>
    ${v[0].toUpperCase() + v.slice(1)}</a>`)}</span>`,
      children: html`
    ${view === 'timeline' ? null : fields}
    ${view === 'graph' && layout
      ? h(Graph, {
        layout, selected: chosen, match: match && ((n) => match(of(n))), asked: route.value.query.get('task') || '', href: (n) => withQuery({ task: n }), status: (n) => seen(of(n)), sub: (n) => sub(of(n)), many: (n) => many(of(n)),
        bar: (n) => (many(of(n)) && of(n).counts ? countBar(of(n).counts, of(n).total || of(n).created || 0) : null),
      })
      : view === 'timeline' ? h(Timeline, { x, tasks, match, fields, chosen, then })
      : found.length === 0 && match ? empty('Nothing matches', html`<p>No task has all of these.</p>`)
      : list({ tasks: found, chosen, key: JSON.stringify([route.value.query.getAll('status'), route.value.query.get('name')]) })}`,
    })}
    ${task ? Chosen({ t: task, x, past: replayed }) : null}</div>`;
}

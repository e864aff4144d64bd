// Executions, newest first. The filters are the address. While the page is open its rows stay up to date and do not move under the
// pointer: what is newer waits behind a button until the list may grow at its top.
import { html, h, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { listed } from '../app/neighbours.js';
import { route, go, withQuery } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, duration, count, number, clock, shortID } from '../app/text.js';
import { statusPill, statusShape, statuses, firstEnd, look, open, verdictWord, verdictTone, waitWord } from '../part/status.js';
import { now, since, labelChips, trouble, empty, loading, useTitle } from '../part/kit.js';
import { FilterField } from '../part/filterfield.js';
import { lazy } from '../app/lazy.js';
import { Views } from './views.js';
import { Where, faultOf } from './where.js';

/** @typedef {import('../types').Execution} Execution */

const pageSize = 50;
const most = 2000; // rows kept in memory
const shown = 100; // of them in the document

/** The states that people filter by; each stands for those that it names. */
const groups = [
  { name: 'waiting', status: ['requested', 'scheduled'], show: 'scheduled', word: 'Waiting' },
  { name: 'running', status: ['provisioning', 'running'], show: 'running', word: 'Running' },
  { name: 'completed', status: ['completed'], show: 'completed', word: 'Completed' },
  { name: 'failed', status: ['failed'], show: 'failed', word: 'Failed' },
  { name: 'timed_out', status: ['timed_out'], show: 'timed_out', word: 'Timed out' },
  { name: 'cancelled', status: ['cancelled'], show: 'cancelled', word: 'Cancelled' },
];

/** What the address selects, in the API's words. @param {URLSearchParams} q */
function selected(q) {
  const chosen = q.getAll('status');
  return {
    status: groups.filter((g) => chosen.includes(g.name)).flatMap((g) => g.status),
    action: q.get('action') || undefined,
    workflow: q.get('workflow') || undefined,
    rerun_of: q.get('rerun_of') || undefined,
    retry_of: q.get('retry_of') || undefined,
    verdict: q.getAll('verdict'),
    label: q.getAll('label'),
    since: q.get('since') || undefined,
    until: q.get('until') || undefined,
    where: q.get('where') || undefined,
    top_level: q.get('tasks') !== 'true' && !q.get('workflow'),
  };
}

/** @param {URLSearchParams} q @param {string} [cursor] */
const asked = (q, cursor) => 'api/v1/executions' + query({ ...selected(q), limit: pageSize, cursor });

const rank = (/** @type {Execution} */ x) => Math.min(statuses.indexOf(x.status), firstEnd);

/** Whether b is not from before a: an execution only moves forward. @param {Execution} a @param {Execution} b */
export const later = (a, b) => b.attempt > a.attempt || (b.attempt === a.attempt && rank(b) >= rank(a));

/**
 * The rows with what a look at the newest page found, and how much of that is newer than all of them.
 * @param {Execution[]} rows
 * @param {Execution[]} page
 */
export function merge(rows, page) {
  const fresh = new Map(page.map((x) => [x.id, x]));
  const kept = rows.map((x) => {
    const y = fresh.get(x.id);
    return y && later(x, y) ? y : x;
  });
  const known = new Set(rows.map((x) => x.id));
  return { rows: kept, newer: page.filter((x) => !known.has(x.id)) };
}

/** How long it ran, or runs. @param {Execution} x @param {number} t */
export function ran(x, t) {
  if (x.wall_ms) return x.wall_ms;
  if (!x.started_at) return NaN;
  return (x.finished_at ? Date.parse(x.finished_at) : t) - Date.parse(x.started_at);
}

/** @param {Execution} x */
export const actionName = (x) => line(x.action, 120) + (x.version ? `@${x.version}` : '');

const hrefOfLabel = (/** @type {string} */ k, /** @type {string} */ v) => 'executions' + query({ label: `${k}=${v}` });

/** What an open row waits for, as far as the row itself says. @param {Execution} x */
function waits(x) {
  if (!open(x.status)) return '';
  if (x.wake_at) return `Until ${clock(x.wake_at)}`;
  if (x.waiting === 'time' && x.not_before && Date.parse(x.not_before) > now.value) return `Starts ${clock(x.not_before)}`;
  if (x.waiting === 'key') return `Key ${line(x.key, 60)}`;
  if (x.waiting === 'queue') return `Queue ${line(x.queue, 60)}`;
  return x.waiting === 'answer' || x.waiting === 'signal' ? waitWord(x.waiting) : '';
}

/** @param {Execution} x */
function outcome(x) {
  const cases = x.summary ? html` <span class="muted num">${number(x.summary.passed)} of ${number(x.summary.total)}</span>` : null;
  if (x.verdict && x.verdict !== 'ok') return html`<span class=${verdictTone(x.verdict)}>${line(verdictWord(x.verdict))}</span>${cases}`;
  if (x.verdict === 'ok') return cases || html`<span class="muted">Exit code 0</span>`;
  if (x.error) return html`<span class="bad user" title=${line(x.error.message, 500)}>${line(x.error.code, 40)}</span>`;
  if (x.cancel_order) return html`<span class="off">Ending is ordered</span>`;
  if (x.paused) return html`<span class="late">Paused</span>`;
  const wait = waits(x);
  if (wait) return html`<span class="muted user" title=${wait}>${wait}</span>`;
  if (x.attempt > 1) return html`<span class="muted">Attempt ${x.attempt}</span>`;
  return null;
}

/** @typedef {{marked: Map<string, string>, mark: (x: Execution) => void}} Marks rows that are marked: their states by id */

/** @param {Execution} x @param {boolean} fresh @param {Marks} marks */
const row = (x, fresh, { marked, mark }) => html`<tr key=${x.id} class=${`${fresh ? 'fresh' : ''} ${marked.has(x.id) ? 'is-marked' : ''}`}>
  <td class="c-status"><input class="box above" type="checkbox" aria-label=${`Mark ${actionName(x)} ${shortID(x.id)}`} value=${x.id} checked=${marked.has(x.id)} onChange=${() => mark(x)} />${statusPill({ status: x.status })}</td>
  <td class="c-action"><div class="name"><a class="open-row user" href=${`executions/${x.id}`}>${actionName(x)}</a>
    ${x.task ? html`<span class="small muted user">${line(x.task, 60)}${x.index ? `[${x.index}]` : ''}</span>` : null}
    <span class="mono muted small" title=${x.id}>${shortID(x.id)}</span>${labelChips(x.labels, hrefOfLabel)}</div></td>
  <td class="c-verdict cut">${outcome(x)}</td>
  <td class="c-time right num">${Number.isFinite(ran(x, now.value)) ? duration(ran(x, now.value)) : html`<span class="muted">–</span>`}</td>
  <td class="c-age right num muted">${since(x.created_at)}</td>
</tr>`;

/** @param {Execution[]} rows @param {Set<string>} fresh @param {Marks} marks */
const table = (rows, fresh, marks) => html`<table class="rows runs">
  <colgroup><col class="c-status" /><col /><col class="c-verdict" /><col class="c-time" /><col class="c-age" /></colgroup>
  <thead><tr><th scope="col">Status</th><th scope="col">Action</th><th scope="col">Outcome or wait</th><th scope="col" class="right">Ran</th><th scope="col" class="right">Created</th></tr></thead>
  <tbody>${rows.map((x) => row(x, fresh.has(x.id), marks))}</tbody>
</table>`;

const Bulk = lazy(() => import('./bulk.js').then((m) => m.Bulk), () => null);
const Marked = lazy(() => import('./bulk.js').then((m) => m.Marked), () => null);

/** @param {{look: () => void, error: unknown}} p look again at what there is */
function Filters({ look: again, error }) {
  const q = route.value.query;
  const chosen = q.getAll('status');
  const set = (/** @type {Record<string, string|string[]|undefined>} */ change) => go(withQuery(change), { replace: true });
  const [label, setLabel] = useState('');
  const addLabel = (/** @type {Event} */ e) => {
    e.preventDefault();
    const text = label.trim();
    if (!/^[^=]+=/.test(text)) return;
    set({ label: [...new Set([...q.getAll('label'), text])] });
    setLabel('');
  };
  const chips = [...q.getAll('label').map((v) => ['label', v]), ...q.getAll('verdict').map((v) => ['verdict', v]),
    ...['since', 'until', 'workflow', 'rerun_of', 'retry_of'].filter((k) => q.get(k)).map((k) => [k, String(q.get(k))])];
  const any = chips.length > 0 || chosen.length > 0 || q.get('action') || q.get('where');
  return html`<div class="filters" role="search" aria-label="Filter executions">
    <div class="toggles" role="group" aria-label="Status">${groups.map((g) => html`<button type="button" class="toggle" aria-pressed=${chosen.includes(g.name)}
      onClick=${() => set({ status: chosen.includes(g.name) ? chosen.filter((n) => n !== g.name) : [...chosen, g.name] })}>
      <span class=${look(g.show).tone}>${statusShape(g.show)}</span>${g.word}</button>`)}</div>
    ${h(FilterField, { label: 'Action', placeholder: 'Action', first: true, value: q.get('action') || '', set: (text) => set({ action: text }) })}
    <form onSubmit=${addLabel}><input class="wide" aria-label="Add a label, as name=value" placeholder="Label name=value" value=${label} spellcheck=${false}
      onInput=${(/** @type {any} */ e) => setLabel(e.target.value)} /></form>
    <label class="check small" title="Also the executions that are tasks of a workflow"><input type="checkbox" checked=${q.get('tasks') === 'true'} onChange=${(/** @type {any} */ e) => set({ tasks: e.target.checked ? 'true' : undefined })} />Tasks too</label>
    ${chips.map(([k, v]) => html`<button type="button" class="toggle" aria-pressed="true" aria-label=${`Take the filter ${k} ${line(v)} away`} onClick=${() => set({ [k]: q.getAll(k).filter((o) => o !== v) })}>
      <span class="user">${k === 'label' ? '' : `${k.replace('_', ' ')} `}${line(v, 60)}</span><span aria-hidden="true">×</span></button>`)}
    ${any ? html`<button type="button" class="plain" onClick=${() => go('executions', { replace: true })}>Clear</button>` : null}
    ${q.getAll('label').length === 1 ? html`<a class="button toggle" href=${'batches' + query({ of: q.getAll('label')[0] })}>Matrix</a>` : null}
    ${any && !faultOf(error) ? h(Bulk, { filter: selected(q), chosen, look: again }) : null}
    ${h(Where, { value: q.get('where') || '', error, set: (text) => set({ where: text }) })}
  </div>`;
}

const server = new URL('../', document.baseURI).href.replace(/\/$/, '');

const firstCommands = `echo 'print(6*7)' | pawl eval --language python --server ${server} -

curl -s ${server}/api/eval -d '{"language": "python", "source": "print(6*7)", "wait": "30s"}'`;

const firstRun = () => empty('Nothing has run yet', html`<p>Submit something from here, from the command line or over HTTP:</p>
  <pre tabindex="0" aria-label="Commands">${firstCommands}</pre>
  <p><a class="button primary" href="new">New execution</a></p>`);

export function Executions() {
  useTitle('Executions');
  const q = route.value.query;
  const address = q.toString();
  const [state, setState] = useState({ address: '', rows: /** @type {Execution[]} */ ([]), newer: /** @type {Execution[]} */ ([]), cursor: '', searched: '', fresh: new Set(), error: /** @type {unknown} */ (null), at: '' });
  const held = useRef(false); // the pointer or the focus is in the list
  const now_ = useRef(state);
  now_.current = state;
  const top = useRef(0);
  const [busy, setBusy] = useState(false);
  const [from, setFrom] = useState(0); // the first row in the document: older pages take the place of newer ones

  const [marked, setMarked] = useState(/** @type {Map<string, string>} */ (new Map()));
  const mark = (/** @type {Execution} */ x) => setMarked((m) => {
    const next = new Map(m);
    if (!next.delete(x.id)) next.set(x.id, x.status);
    return next;
  });

  top.current = from;
  useEffect(() => {
    setFrom(0);
    setMarked(new Map());
  }, [address]);

  const show = () => {
    setFrom(0);
    setState((s) => ({ ...s, rows: [...s.newer, ...s.rows].slice(0, most), newer: [], fresh: new Set(s.newer.map((x) => x.id)) }));
  };

  useEffect(() => {
    let mine = true;
    const look = async () => {
      try {
        const page = await getJSON(asked(q));
        if (!mine) return;
        const s = now_.current;
        const rows = page.executions || [];
        if (s.address !== address || s.at === '') {
          setState({ address, rows, newer: [], cursor: page.next_cursor || '', searched: page.searched_to || '', fresh: new Set(), error: null, at: 'now' });
          return;
        }
        const m = merge(s.rows, rows);
        await refreshOpen(m.rows, new Set(rows.map((/** @type {Execution} */ x) => x.id)));
        if (!mine) return;
        const watching = !held.current && scrollY < 80 && top.current === 0;
        const free = watching && m.newer.length < pageSize;
        // A whole page of new rows says nothing about how many more there are between them and the rows shown: the list starts anew.
        if (watching && m.newer.length >= pageSize) setState({ ...s, rows, newer: [], cursor: page.next_cursor || '', searched: page.searched_to || '', fresh: new Set(), error: null });
        else setState({ ...s, error: null, rows: free ? [...m.newer, ...m.rows].slice(0, most) : m.rows, newer: free ? [] : m.newer, fresh: free ? new Set(m.newer.map((x) => x.id)) : s.fresh });
      } catch (error) {
        if (mine) setState((s) => ({ ...s, error }));
        throw error;
      }
    };
    const stop = poll(look, 2000, 'api/v1/executions');
    return () => {
      mine = false;
      stop();
    };
  }, [address]);

  const more = async () => {
    if (from + shown < state.rows.length) {
      setFrom(from + pageSize);
      return;
    }
    setBusy(true);
    try {
      const page = await getJSON(asked(q, state.cursor));
      setState((s) => {
        const known = new Set(s.rows.map((x) => x.id));
        return { ...s, rows: [...s.rows, ...page.executions.filter((/** @type {Execution} */ x) => !known.has(x.id))].slice(0, most), cursor: s.rows.length < most ? page.next_cursor || '' : '', searched: page.searched_to || '' };
      });
      setFrom(Math.max(0, state.rows.length + page.executions.length - shown));
    } catch (error) {
      setState((s) => ({ ...s, error }));
    }
    setBusy(false);
  };

  const ready = state.at !== '' && state.address === address;
  const filtered = address !== '' && address !== 'tasks=true';
  const restart = state.newer.length >= pageSize;
  const rows = ready ? state.rows : [];
  useLayoutEffect(() => { if (ready) listed('executions' + (address ? `?${address}` : ''), rows.map((x) => x.id)); }, [ready, address, rows]);
  // What is marked is ordered by the states that the rows have now.
  const states = new Map(rows.filter((x) => marked.has(x.id)).map((x) => [x.id, x.status]));
  return html`<div>
    <div class="top"><h1>Executions</h1>${h(Views, {})}<a class="button primary" href="new">New execution</a></div>
    ${h(Filters, { look: () => setState((s) => ({ ...s, at: '' })), error: state.error })}
    ${faultOf(state.error) ? null : trouble(state.error)}
    <div class="newer" aria-live="polite">${state.newer.length > 0 ? html`<button type="button" class="primary" aria-keyshortcuts="." onClick=${restart ? () => { setFrom(0); setState((s) => ({ ...s, at: '' })); } : show}>
      ${restart ? `${pageSize}+ new` : `${state.newer.length} new`} <kbd>.</kbd></button>` : null}</div>
    <div class="panel" onPointerEnter=${() => { held.current = true; }} onPointerLeave=${() => { held.current = false; }}
      onFocusIn=${() => { held.current = true; }} onFocusOut=${() => { held.current = false; }}>
      ${!ready && state.error ? null : !ready ? loading() : state.rows.length > 0 ? table(state.rows.slice(from, from + shown), state.fresh, { marked, mark })
        : state.searched ? empty('Nothing yet', html`<p>None of the executions since ${clock(state.searched)} has all of these. Older ones were not looked at.</p><p><button type="button" onClick=${more} disabled=${busy} data-further>Search further back</button></p>`)
        : filtered ? empty('Nothing matches', html`<p>No execution has all of these.</p><p><button type="button" onClick=${() => go('executions', { replace: true })}>Clear the filters</button></p>`) : firstRun()}
    </div>
    ${ready && state.rows.length > 0 ? html`<div class="more">
      ${from > 0 ? html`<button type="button" onClick=${() => { setFrom(0); scrollTo(0, 0); }}>Newest</button><button type="button" onClick=${() => setFrom(Math.max(0, from - pageSize))}>Newer</button>` : null}
      ${state.cursor || from + shown < state.rows.length ? html`<button type="button" onClick=${more} disabled=${busy}>${state.searched && from + shown >= state.rows.length ? 'Search further back' : 'Older'}</button>` : null}
      <span class="muted small num">${from > 0 || state.cursor || state.rows.length > shown ? `${number(from + 1)} … ${number(Math.min(from + shown, state.rows.length))}` : `${count(state.rows.length, 'row')}, and that is all`}${state.searched ? html`, looked at everything since ${clock(state.searched)}` : ''}${!state.cursor && state.rows.length >= most ? ': narrow the filters to see older ones' : ''}</span></div>` : null}
    ${states.size > 0 ? h(Marked, { marked: states, clear: () => setMarked(new Map()), look: () => { setMarked(new Map()); setState((s) => ({ ...s, at: '' })); } }) : null}
  </div>`;
}

/**
 * Looks again at some open rows that the newest page does not have, and puts what it finds in their place.
 * @param {Execution[]} rows @param {Set<string>} seen
 */
async function refreshOpen(rows, seen) {
  const stale = rows.map((x, i) => ({ x, i })).filter(({ x }) => open(x.status) && !seen.has(x.id)).slice(0, 5);
  await Promise.all(stale.map(async ({ x, i }) => {
    const y = await getJSON(`api/v1/executions/${x.id}`);
    delete y.input;
    delete y.output;
    if (later(x, y)) rows[i] = y;
  }));
}

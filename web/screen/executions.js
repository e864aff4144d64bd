// Executions, newest first. The filters are the address. While the page is open its rows stay up to date and do not move under the
// pointer: newer executions wait behind a button until the list may grow at its top.
import { html, h, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { listed } from '../app/neighbours.js';
import { route, go, withQuery } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, duration, count, number, clock, shortID } from '../app/text.js';
import { looked, most, nothing, older } from '../part/rows.js';
import { statusPill, statusShape, shownAs, look, open, verdictWord, verdictTone } from '../part/status.js';
import { groups, selected, chipsOf } from '../part/selection.js';
import { now, since, labelChips, trouble, empty, loading, useTitle } from '../part/kit.js';
import { FilterField } from '../part/filterfield.js';
import { lazy } from '../app/lazy.js';
import { Where, faultOf } from './where.js';

/** @typedef {import('../types').Execution} Execution */

const pageSize = 50;
const shown = 100; // rows in the document

/** @param {URLSearchParams} q @param {string} [cursor] */
const asked = (q, cursor) => 'api/v1/executions' + query({ ...selected(q), limit: pageSize, cursor });

/** The result for an address. @param {string} address @param {import('../types').ExecutionPage} p @returns {import('../part/rows.js').Page} */
const pageOf = (address, p) => ({ address, rows: p.executions || [], cursor: p.next_cursor || '', searched: p.searched_to || '' });

/** How long it ran, or runs. @param {Execution} x @param {number} t */
export function ran(x, t) {
  if (x.wall_ms) return x.wall_ms;
  if (!x.started_at) return NaN;
  return (x.finished_at ? Date.parse(x.finished_at) : t) - Date.parse(x.started_at);
}

/** @param {Execution} x */
export const actionName = (x) => line(x.action, 120) + (x.version ? `@${x.version}` : '');

const hrefOfLabel = (/** @type {string} */ k, /** @type {string} */ v) => 'executions' + query({ label: `${k}=${v}` });

/** The cause of an open row's wait, as far as the row shows it. @param {Execution} x */
function waits(x) {
  if (!open(x.status)) return '';
  if (x.wake_at && x.kind !== 'ask') return `Until ${clock(x.wake_at)}`; // a question's is the next reminder, too
  if (x.waiting === 'time' && x.not_before && Date.parse(x.not_before) > now.value) return `Starts ${clock(x.not_before)}`;
  if (x.waiting === 'key') return `Key ${line(x.key, 60)}`;
  return x.waiting === 'queue' ? `Queue ${line(x.queue, 60)}` : '';
}

/** @param {Execution} x */
function outcome(x) {
  const cases = x.summary ? html` <span class="muted num">${number(x.summary.passed)} of ${number(x.summary.total)}</span>` : null;
  if (x.verdict && x.verdict !== 'ok' && x.verdict !== x.status) return html`
    <span class=${verdictTone(x.verdict)}>${line(verdictWord(x.verdict))}</span>
    ${cases}`;
  if (x.verdict === 'ok') return cases || html`<span class="muted">Exit code 0</span>`;
  if (x.error?.code === x.status) return html`
    <span class="muted user" title=${line(x.error.message, 500)}>${line(x.error.message, 120)}</span>`;
  if (x.error?.code === 'task_failed') return html`
    <span class="bad user" title=${line(x.error.message, 500)}>${line(x.error.message, 120)}</span>`;
  if (x.error) return html`<span class="bad user" title=${line(x.error.message, 500)}>${line(x.error.code, 40)}</span>`;
  if (x.cancel_order?.cleanup_until) return html`<span class="off">Cleaning up until ${clock(x.cancel_order.cleanup_until)}</span>`;
  if (x.cancel_order) return html`<span class="off">Ending is ordered</span>`;
  if (x.paused) return html`<span class="late">Paused</span>`;
  if (x.inquiry) return html`<a class="above" href=${`questions/${x.inquiry}`}>Answer it</a>`;
  const wait = waits(x);
  if (wait) return html`<span class="muted user" title=${wait}>${wait}</span>`;
  if (x.attempt > 1) return html`<span class="muted">Attempt ${x.attempt}</span>`;
  return null;
}

/** @typedef {{marked: Map<string, string>, mark: (x: Execution) => void}} Marks rows that are marked: their states by id */

/** @param {Execution} x @param {boolean} fresh @param {Marks} marks */
const row = (x, fresh, { marked, mark }) => html`
  <tr key=${x.id} class=${`${fresh ? 'fresh' : ''} ${marked.has(x.id) ? 'is-marked' : ''}`}>
    <td class="c-status">
      <input class="box above" type="checkbox" aria-label=${`Mark ${actionName(x)} ${shortID(x.id)}`} value=${x.id}
          checked=${marked.has(x.id)} onChange=${() => mark(x)} />
      ${statusPill({ status: shownAs(x) })}
    </td>
    <td class="c-action">
      <div class="name">
        <a class="open-row user" href=${`executions/${x.id}`}>${actionName(x)}</a>
        ${x.task ? html`<span class="small muted user">${line(x.task, 60)}${x.index ? `[${x.index}]` : ''}</span>` : null}
        <span class="mono muted small" title=${x.id}>${shortID(x.id)}</span>
        ${labelChips(x.labels, hrefOfLabel)}
      </div>
    </td>
    <td class="c-verdict cut">${outcome(x)}</td>
    <td class="c-time right num">
      ${Number.isFinite(ran(x, now.value)) ? duration(ran(x, now.value)) : html`<span class="muted">–</span>`}
    </td>
    <td class="c-age right num muted">${since(x.created_at)}</td>
  </tr>`;

/** @param {Execution[]} rows @param {Set<string>} fresh @param {Marks} marks */
const table = (rows, fresh, marks) => html`
  <table class="rows runs">
    <colgroup><col class="c-status" /><col /><col class="c-verdict" /><col class="c-time" /><col class="c-age" /></colgroup>
    <thead>
      <tr>
        <th scope="col">Status</th>
        <th scope="col">Action</th>
        <th scope="col">Outcome or wait</th>
        <th scope="col" class="right">Ran</th>
        <th scope="col" class="right">Created</th>
      </tr>
    </thead>
    <tbody>${rows.map((x) => row(x, fresh.has(x.id), marks))}</tbody>
  </table>`;

const Views = lazy(() => import('./views.js').then((m) => m.Views), () => null);

/** The storage key of saved views. */
export const viewsKept = 'pawl.views';

function anyViews() {
  try {
    return localStorage.getItem(viewsKept) !== null;
  } catch {
    return false; // a browser may keep nothing for this page
  }
}

const Bulk = lazy(() => import('./bulk.js').then((m) => m.Bulk), () => null);
const Marked = lazy(() => import('./bulk.js').then((m) => m.Marked), () => null);
const FirstRun = lazy(() => import('./firstrun.js').then((m) => m.FirstRun));

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
  const chips = chipsOf(q);
  const any = chips.length > 0 || chosen.length > 0 || q.get('action') || q.get('where');
  return html`
    <div class="filters" role="search" aria-label="Filter executions">
      <div class="toggles" role="group" aria-label="Status">
        ${groups.map((g) => html`
          <button type="button" class="toggle" aria-pressed=${chosen.includes(g.name)}
              onClick=${() => set({ status: chosen.includes(g.name) ? chosen.filter((n) => n !== g.name) : [...chosen, g.name] })}>
            <span class=${look(g.show).tone}>${statusShape(g.show)}</span>
            ${g.word}
          </button>`)}
      </div>
      ${h(FilterField, { label: 'Action', placeholder: 'Action', first: true, value: q.get('action') || '', set: (text) => set({ action: text }) })}
      <form onSubmit=${addLabel}>
        <input class="wide" aria-label="Add a label, as name=value" placeholder="Label name=value" value=${label} spellcheck=${false}
            onInput=${(/** @type {any} */ e) => setLabel(e.target.value)} />
      </form>
      <label class="check small" title="Also the executions that are tasks of a workflow">
        <input type="checkbox" checked=${q.get('tasks') === 'true'}
            onChange=${(/** @type {any} */ e) => set({ tasks: e.target.checked ? 'true' : undefined })} />Tasks too
      </label>
      ${chips.map(({ key: k, value: v, without }) => html`
        <button type="button" class="toggle" aria-pressed="true" aria-label=${`Take the filter ${k} ${line(v)} away`}
            onClick=${() => set(without)}>
          <span class="user">${k === 'label' ? '' : `${k.replace('_', ' ')} `}${line(v, 60)}</span>
          <span aria-hidden="true">×</span>
        </button>`)}
      ${any ? html`<button type="button" class="plain" onClick=${() => go('executions', { replace: true })}>Clear</button>` : null}
      ${q.getAll('label').length === 1 ? html`
        <a class="button toggle" href=${'batches' + query({ of: q.getAll('label')[0] })}>Matrix</a>` : null}
      ${any && !faultOf(error) ? h(Bulk, { filter: selected(q), chosen, look: again }) : null}
      ${h(Where, { value: q.get('where') || '', error, set: (text) => set({ where: text }) })}
    </div>`;
}

export function Executions() {
  useTitle('Executions');
  const q = route.value.query;
  const address = q.toString();
  const [state, setState] = useState(nothing);
  const [round, next] = useState(0);
  const held = useRef(false); // the pointer or the focus is in the list
  const latest = useRef(state);
  latest.current = state;
  const top = useRef(0);
  const [busy, setBusy] = useState(false);
  const [from, setFrom] = useState(0); // the first row in the document: older pages take the place of newer ones

  const [marked, setMarked] = useState(/** @type {Map<string, string>} */ (new Map()));
  // The states of what is marked when a question about it opened: before the answer to the order is there, the list can show that they have
  // ended, or have their rows no more.
  const [questioned, setQuestioned] = useState(/** @type {Map<string, string>|null} */ (null));
  const mark = (/** @type {Execution} */ x) => setMarked((m) => {
    const next = new Map(m);
    if (!next.delete(x.id)) next.set(x.id, x.status);
    return next;
  });

  top.current = from;
  useLayoutEffect(() => {
    setFrom(0);
    setMarked(new Map());
    setQuestioned(null);
  }, [address]);

  const show = () => {
    setFrom(0);
    setState((s) => ({ ...s, rows: [...s.newer, ...s.rows].slice(0, most), newer: [], fresh: new Set(s.newer.map((x) => x.id)) }));
  };

  useEffect(() => {
    let mine = true;
    const look = async () => {
      try {
        const page = pageOf(address, await getJSON(asked(q)));
        const found = new Set(page.rows.map((x) => x.id));
        const s = latest.current;
        const stale = s.address === address && s.known ? s.rows.slice(top.current, top.current + shown).filter((x) => open(x.status) && !found.has(x.id)) : [];
        /** @type {import('../types').ExecutionPage} */
        const again = mine && stale.length > 0 ? await getJSON('api/v1/executions' + query({ id: stale.map((x) => x.id), limit: shown })) : { executions: [] };
        if (!mine) return;
        const free = !held.current && scrollY < 80 && top.current === 0;
        setState((now) => looked(now, page, { asked: stale, found: again.executions }, free, pageSize));
      } catch (error) {
        if (mine) setState((s) => ({ ...s, error }));
        throw error;
      }
    };
    const stop = poll(look, 2000, true);
    return () => {
      mine = false;
      stop();
    };
  }, [address, round]);
  /** Loads the newest page now. */
  const anew = () => {
    setFrom(0);
    setState((s) => ({ ...s, known: false }));
    next((n) => n + 1);
  };

  const more = async () => {
    if (from + shown < state.rows.length) {
      setFrom(from + pageSize);
      return;
    }
    setBusy(true);
    try {
      const page = pageOf(address, await getJSON(asked(q, state.cursor)));
      const after = older(latest.current, page, state.cursor);
      if (after !== latest.current) setFrom(Math.max(0, after.rows.length - shown));
      setState((s) => older(s, page, state.cursor));
    } catch (error) {
      setState((s) => (s.address === address ? { ...s, error } : s));
    }
    setBusy(false);
  };

  const ready = state.known && state.address === address;
  const filtered = address !== '' && address !== 'tasks=true';
  const restart = state.newer.length >= pageSize;
  const rows = ready ? state.rows : [];
  useLayoutEffect(() => { if (ready) listed('executions' + (address ? `?${address}` : ''), rows.map((x) => x.id)); }, [ready, address, rows]);
  // The order for marked rows follows from their present states.
  const states = questioned || new Map(rows.filter((x) => marked.has(x.id)).map((x) => [x.id, x.status]));
  return html`
    <div>
      <div class="top">
        <h1>Executions</h1>
        ${address !== '' || anyViews() ? h(Views, {}) : null}
        <a class="button primary" href="new">New execution</a>
      </div>
      ${h(Filters, { look: anew, error: state.error })}
      ${faultOf(state.error) ? null : trouble(state.error)}
      <div class="newer" aria-live="polite">
        ${state.newer.length > 0 ? html`
          <button type="button" class="primary" aria-keyshortcuts="." onClick=${restart ? anew : show}>
            ${restart ? `${pageSize}+ new` : `${state.newer.length} new`} <kbd>.</kbd>
          </button>` : null}
      </div>
      <div class="panel" onPointerEnter=${() => { held.current = true; }} onPointerLeave=${() => { held.current = false; }}
          onFocusIn=${() => { held.current = true; }} onFocusOut=${() => { held.current = false; }}>
        ${!ready && state.error
          ? null
          : !ready ? loading()
          : state.rows.length > 0 ? table(state.rows.slice(from, from + shown), state.fresh, { marked, mark })
          : state.searched ? empty('Nothing yet', html`
            <p>None of the executions since ${clock(state.searched)} has all of these. Older ones were not looked at.</p>
            <p><button type="button" onClick=${more} disabled=${busy} data-further>Search further back</button></p>`)
          : filtered ? empty('Nothing matches', html`
            <p>No execution has all of these.</p>
            <p><button type="button" onClick=${() => go('executions', { replace: true })}>Clear the filters</button></p>`)
          : h(FirstRun, {})}
      </div>
      ${ready && state.rows.length > 0
        ? html`
          <div class="more">
            ${from > 0 ? html`
              <button type="button" onClick=${() => { setFrom(0); scrollTo(0, 0); }}>Newest</button>
              <button type="button" onClick=${() => setFrom(Math.max(0, from - pageSize))}>Newer</button>` : null}
            ${state.cursor || from + shown < state.rows.length ? html`
              <button type="button" onClick=${more} disabled=${busy}>
                ${state.searched && from + shown >= state.rows.length ? 'Search further back' : 'Older'}
              </button>` : null}
            <span class="muted small num">
              ${from > 0 || state.cursor || state.rows.length > shown ? `${number(from + 1)} … ${number(Math.min(from + shown, state.rows.length))}` : `${count(state.rows.length, 'row')}, and that is all`}
              ${state.searched ? html`, looked at everything since ${clock(state.searched)}` : ''}
              ${!state.cursor && state.rows.length >= most ? ': narrow the filters to see older ones' : ''}
            </span>
          </div>`
        : null}
      ${states.size > 0 ? h(Marked, { marked: states, clear: () => setMarked(new Map()), look: () => { setMarked(new Map()); anew(); }, asking: (/** @type {boolean} */ on) => setQuestioned(on ? states : null) }) : null}
    </div>`;
}

// One batch as a matrix of executions and their cases, as a pivot of two labels, and beside another batch.
import { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { save } from '../app/save.js';
import { route, go, withQuery } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, count, number, duration } from '../app/text.js';
import { matrix, paired, keeping, flip, csv, byLabel, natural, outcome, growing, mostCols } from '../part/matrix.js';
import { grid, legend } from '../part/grid.js';
import { open } from '../part/status.js';
import { trouble, loading, panel, empty } from '../part/kit.js';

/** @typedef {import('../types').Execution} Execution */
/** @typedef {import('../part/matrix.js').Row} Row */
/** @typedef {import('../part/cells.js').Names} Names */

const most = 10000; // executions of a batch that are loaded

/** What a batch selects: the executions with a label, or the tasks of a workflow. @param {string} of */
const selects = (of) => (of.includes('=') ? { label: of } : { workflow: of });

const atOnce = 100; // executions whose names of cases are asked for together

/** Asks for the names of cases that are not known yet, of one execution for all that have the same. @param {Execution[]} all @param {Names} names */
async function learn(all, names) {
  /** @type {Map<string, string>} */
  const of = new Map();
  for (const x of all) if (x.digest?.names && !names.has(x.digest.names)) of.set(x.digest.names, x.id);
  const ids = [...of.values()];
  const called = new Map([...of].map(([name, id]) => [id, name]));
  for (let i = 0; i < ids.length; i += atOnce) {
    /** @type {string|undefined} */
    let cursor;
    do {
      const page = /** @type {import('../types').ExecutionPage} */ (await getJSON('api/v1/executions' + query({ id: ids.slice(i, i + atOnce), cases: true, limit: atOnce, cursor })));
      for (const x of page.executions || []) names.set(called.get(x.id) || '', (x.case_verdicts || []).map((c) => c.name));
      cursor = page.next_cursor;
    } while (cursor);
  }
}

/** All executions of a batch, newest first, and whether there are more; the names of their cases are added to those known. @param {string} of @param {Names} names @returns {Promise<{all: Execution[], more: boolean}>} */
async function load(of, names) {
  /** @type {Execution[]} */
  const all = [];
  /** @type {string|undefined} */
  let cursor;
  do {
    const page = /** @type {import('../types').ExecutionPage} */ (await getJSON('api/v1/executions' + query({ ...selects(of), digest: true, limit: 1000, cursor })));
    all.push(...(page.executions || []));
    cursor = page.next_cursor;
  } while (cursor && all.length < most);
  await learn(all, names);
  return { all: all.slice(0, most), more: !!cursor };
}

/** Follows a batch until everything in it has ended; one that is empty is waited for. Names of cases are kept. @param {string} of @param {string} against */
function useBatches(of, against) {
  const [state, set] = useState(/** @type {{key: string, now?: {all: Execution[], more: boolean}, before?: {all: Execution[], more: boolean}, error: unknown}} */ ({ key: '', error: null }));
  const key = `${of}\n${against}`;
  const { current: names } = useRef(/** @type {Names} */ (new Map()));
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      try {
        const [now, before] = await Promise.all([load(of, names), against ? load(against, names) : undefined]);
        if (mine) set({ key, now, before, error: null });
        return growing(now.all) || (!!before && growing(before.all));
      } catch (error) {
        if (mine) set((s) => ({ ...(s.key === key ? s : {}), key, error }));
        throw error;
      }
    }, 3000, true);
    return () => {
      mine = false;
      stop();
    };
  }, [key]);
  return state.key === key ? { ...state, names } : { key, names, error: null };
}

const sorts = [['', 'By name'], ['passed', 'Most passed first'], ['failed', 'Least passed first'], ['wall', 'Longest first']];
const shows = [['', 'Everything'], ['failing', 'What did not pass'], ['flips', 'What flipped']];

/** @param {string} id @param {string} label @param {string} value @param {string[][]} options @param {(v: string) => void} set */
const choice = (id, label, value, options, set) => html`
  <div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(/** @type {any} */ e) => set(e.target.value)}>
      ${options.map(([v, word]) => html`<option value=${v}>${line(word, 60)}</option>`)}
    </select>
  </div>`;

/** Names of labels in a batch, but for that which makes it. @param {Execution[]} all @param {string} without */
const labelsOf = (all, without) => [...new Set(all.flatMap((x) => Object.keys(x.labels || {})))].filter((k) => k !== without).sort(natural).slice(0, 40);

/** Folds no columns. @type {{foldedColumns: import('../part/equal.js').Folding}} */
const apart = { foldedColumns: (_, cols) => ({ cols, groups: new Map() }) };

/** @param {{of: string, against: string}} p */
export function Batch({ of, against }) {
  const q = route.value.query;
  const { now, before, names, error } = useBatches(of, against);
  const without = of.includes('=') ? of.slice(0, of.indexOf('=')) : '';
  const withoutOld = against.includes('=') ? against.slice(0, against.indexOf('=')) : '';
  const [equal, setEqual] = useState(/** @type {typeof apart|null} */ (null));
  const folds = useRef(/** @type {HTMLButtonElement|null} */ (null)); // gets the focus of a heading that is pressed
  const labels = useMemo(() => (now ? labelsOf(now.all, without) : []), [now]);
  const anyCases = !!now?.all.some((x) => x.digest);
  const rowsBy = q.get('rows') || 'execution';
  const colsBy = q.get('cols') || (anyCases ? 'case' : 'outcome');
  const made = useMemo(() => now && matrix(now.all, { rows: rowsBy, cols: colsBy, without, names }), [now, rowsBy, colsBy]);
  const old = useMemo(() => before && matrix(before.all, { rows: rowsBy, cols: colsBy, without: withoutOld, names }), [before, rowsBy, colsBy]);
  const wide = !!made && made.cols.length > 3;
  useEffect(() => { if (wide) import('../part/equal.js').then(setEqual, () => setEqual(apart)); }, [wide]);
  if (!now || !made || (wide && !equal)) return error ? trouble(error) : loading();
  if (now.all.length === 0) return html`
    ${trouble(error)}
    <div class="panel">${empty('Nothing has this label', html`<p>No execution is in the batch ${line(of, 120)}.</p>`)}</div>`;
  const pair = old ? paired(made, old) : null;
  const show = q.get('show') || '';
  const sort = q.get('sort') || '';
  let rows = (pair ? pair.rows : made.rows.map((r) => ({ key: r.key, now: /** @type {Row|undefined} */ (r), before: /** @type {Row|undefined} */ (undefined) }))).map((r) => {
    const row = /** @type {Row} */ (r.now || r.before);
    const sum = r.now ? html`${number(r.now.passed)} <span class="muted">of ${number(r.now.total)}</span>` : html`
      <span class="muted">gone</span>`;
    const one = rowsBy === 'execution' && r.now?.ids.length === 1;
    return {
      key: r.key, row, name: line(row.title, 160) || 'without it', title: line(row.title, 80) || html`
        <span class="muted">without it</span>`, sum,
      href: one ? `executions/${row.ids[0]}` : r.now && rowsBy.startsWith('label:') && of.includes('=') ? 'executions' + query({ label: [of, `${rowsBy.slice(6)}=${row.key}`], tasks: 'true' }) : undefined,
      now: r.now?.cells || new Map(), before: pair ? r.before?.cells || new Map() : undefined,
    };
  });
  let cols = pair ? pair.cols : made.cols;
  if (show === 'failing') ({ rows, cols } = keeping(rows, cols, (cell) => !!cell && cell.passed < cell.n));
  else if (show === 'flips' && pair) ({ rows, cols } = keeping(rows, cols, (cell, was) => flip(was, cell) !== 'same'));
  const noun = colsBy === 'case' && anyCases ? 'case' : 'execution';
  const unfolded = q.getAll('unfold');
  const each = q.get('equal') === 'each';
  const folded = ((!each && equal) || apart).foldedColumns(rows, cols, unfolded, colsBy === 'case' ? 'case' : 'column');
  const whole = each || unfolded.length > 0;
  cols = folded.cols;
  const allCols = cols.length;
  if (allCols > mostCols) cols = cols.slice(0, mostCols);
  const share = (/** @type {Row} */ r) => r.passed / Math.max(1, r.total);
  rows.sort(sort === 'passed' ? (a, b) => share(b.row) - share(a.row) : sort === 'failed' ? (a, b) => share(a.row) - share(b.row) : sort === 'wall' ? (a, b) => b.row.wall - a.row.wall : (a, b) => natural(a.key, b.key));
  const total = made.rows.reduce((n, r) => n + r.total, 0);
  const passed = made.rows.reduce((n, r) => n + r.passed, 0);
  const going = now.all.filter((x) => open(x.status)).length;
  const set = (/** @type {string} */ k) => (/** @type {string} */ v) => go(withQuery({ [k]: v || undefined }), { replace: true });
  const dims = labels.map((l) => [byLabel(l), `Label ${l}`]);
  const wall = made.rows.reduce((n, r) => n + r.wall, 0);
  /** @param {(typeof rows)[number]} r @param {string} c @param {import('../part/matrix.js').Cell|undefined} cell */
  const href = (r, c, cell) => {
    const was = r.before?.get(c);
    if (cell && was && cell.n === 1 && was.n === 1 && flip(was, cell) !== 'same') return 'compare' + query({ a: was.id, b: cell.id });
    const id = cell?.id || was?.id;
    return `executions/${id}` + (colsBy === 'case' && c !== outcome ? `/result${query({ case: c })}` : '');
  };
  return html`
    <div class="stack">
      ${trouble(error)}
      ${now.more ? html`<p class="note late">Here are the latest ${number(most)} executions: the batch has more.</p>` : null}
      ${allCols > cols.length ? html`
        <p class="note late">
          Here are the first ${number(cols.length)} of ${count(allCols, 'column')}. Numbers of what passed are of all.
        </p>` : null}
      <div class="row form-row choices">
        ${choice('rows', 'Rows', rowsBy, [['execution', 'Each execution'], ['action', 'Action'], ...(of.includes('=') ? [] : [['task', 'Task']]), ...dims], set('rows'))}
        ${choice('cols', 'Columns', colsBy, [['case', 'Cases'], ['outcome', 'Outcome'], ...dims], set('cols'))}
        ${choice('show', 'Show', show, pair ? shows : shows.slice(0, 2), set('show'))}
        ${choice('sort', 'Sort', sort, sorts, set('sort'))}
      </div>
      <section class="panel">
        <header>
          <h2>${number(passed)} of ${now.more ? `the latest ${count(total, noun)}` : count(total, noun)} passed</h2>
          <span class="muted small num">
            ${count(now.all.length, 'execution')}
            ${going ? `, ${number(going)} under way` : ''}
            ${wall ? `, ${duration(wall)} in all` : ''}
          </span>
          ${whole || folded.groups.size ? html`
            <button type="button" class="plain" ref=${folds}
                onClick=${() => go(withQuery({ equal: whole ? undefined : 'each', unfold: undefined }), { replace: true })}>
              ${whole ? 'Fold equal columns' : 'Show each column'}
            </button>` : null}
          <button type="button" class="plain" onClick=${() => save(csv(made), `${of.replace(/[^\w.-]+/g, '-')}.csv`, 'text/csv')}>
            CSV
          </button>
        </header>
        <div class="bar" aria-hidden="true"><i class="good" style=${{ width: `${(100 * passed) / Math.max(1, total)}%` }}></i></div>
        ${pair ? html`
          <p class="body row small num" role="status">
            <span class="good">▲ ${number(pair.count.better)} better</span>
            <span class="bad">▼ ${number(pair.count.worse)} worse</span>
            <span class="late">◆ ${number(pair.count.other)} failed otherwise</span>
            <span class="muted">${number(pair.count.same)} the same</span>
            ${pair.count.new ? html`<span class="muted">${number(pair.count.new)} only here</span>` : null}
            ${pair.count.gone ? html`<span class="muted">${number(pair.count.gone)} only there</span>` : null}
          </p>` : null}
        ${rows.length === 0 || cols.length === 0
          ? empty(show === 'flips' ? 'Nothing flipped' : 'All passed', html`
            <p>${show === 'flips' ? 'Every cell is as it was.' : 'There is nothing that did not pass.'}</p>`)
          : html`
            ${grid({ rows, cols, groups: folded.groups, unfold: (c) => { go(withQuery({ unfold: [...unfolded, c] }), { replace: true }); folds.current?.focus(); }, name: 'Matrix', head: rowsBy.startsWith('label:') ? line(rowsBy.slice(6), 40) : rowsBy === 'execution' ? 'Execution' : rowsBy === 'task' ? 'Task' : 'Action', href: /** @type {any} */ (href) })}
            ${legend(rows, cols)}`}
      </section>
    </div>`;
}

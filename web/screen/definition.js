// A registered workflow or action: its tasks, its versions and its document.
import { html, h, useEffect, useMemo, useState } from '../vendor/preact.js';
import { getJSON, request, query } from '../app/api.js';
import { route, withQuery } from '../app/router.js';
import { line, plain, clock, count } from '../app/text.js';
import { lazy } from '../app/lazy.js';
import { json } from '../part/json.js';
import { members } from '../part/members.js';
import { Graph, inPixels } from '../part/graph.js';
import { taskFilter } from '../part/taskfilter.js';
import { Aliases } from './aliases.js';
import { PauseOrder } from './pause.js';
import { since, trouble, loading, panel, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Definition} Definition */

const Document = lazy(() => import('./document.js').then((m) => m.Document));
const Changed = lazy(() => import('./changed.js').then((m) => m.Changed));

/** @param {any} doc @returns {{name: string, action: string, foreach: boolean, repeat: boolean}[]} */
const tasksOf = (doc) => Object.entries(doc?.tasks && typeof doc.tasks === 'object' && !Array.isArray(doc.tasks) ? doc.tasks : {})
  .map(([name, t]) => ({ name, action: String(t?.action ?? ''), foreach: t?.foreach !== undefined, repeat: t?.repeat !== undefined }));

/** The address of the list of executions of one version, including tasks of workflows. @param {string} name @param {number} version */
const runsOf = (name, version) => 'executions' + query({ action: name, where: `version = ${version}`, tasks: 'true' });

/** The versions of a definition, the newest first. @param {{name: string, shown: number}} p */
function Versions({ name, shown }) {
  const [all, set] = useState(/** @type {{rows: Definition[], cursor: string}|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const load = async (/** @type {string} */ cursor) => {
    try {
      const page = await getJSON(`api/v1/definitions/${encodeURIComponent(name)}/versions` + query({ cursor }));
      set((s) => (cursor && s?.cursor !== cursor ? s : { rows: [...(cursor && s ? s.rows : []), ...page.definitions], cursor: page.next_cursor || '' }));
    } catch (e) {
      setError(e);
    }
  };
  useEffect(() => { load(''); }, [name]);
  if (error) return trouble(error);
  if (!all || all.rows.length < 2) return null;
  return panel({ title: 'Versions', children: html`
    <div class="scroll">
    <table class="rows">
    <thead><tr><th scope="col">Version</th><th scope="col">Executions</th><th scope="col" class="right">Registered</th></tr></thead>
    <tbody>
    ${all.rows.map((d) => html`
    <tr key=${d.version}>
    <td class="num">
    ${d.version === shown ? html`<strong aria-current="true">${d.version}</strong> shown` : html`
    <a class="open-row" href=${withQuery({ version: String(d.version), task: undefined })}>${d.version}</a>`}</td>
    <td><a class="above" href=${runsOf(name, d.version)} aria-label=${`Runs of version ${d.version}`}>Runs</a></td>
    <td class="right num">${since(d.created_at)}</td></tr>`)}</tbody></table></div>
    ${all.cursor ? html`<div class="more"><button type="button" onClick=${() => load(all.cursor)}>Older</button></div>` : null}` });
}

/** @param {{name: string}} p */
export function Definition({ name }) {
  useTitle(name);
  const version = route.value.query.get('version') || '';
  const [state, set] = useState(/** @type {{d: Definition, raw: string, laid: any}|null} */ (null));
  const [looks, setLooks] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    let mine = true;
    (async () => {
      const at = `api/v1/definitions/${encodeURIComponent(name)}`;
      const text = await (await request(at + query({ version }))).text();
      const d = JSON.parse(text);
      if (mine) set({ d, raw: members(text).document || '', laid: null });
      if (mine) setError(null);
      if (d.kind !== 'workflow') return;
      const laid = await getJSON(`${at}/graph${query({ version: d.version })}`).catch(() => null);
      if (mine && Array.isArray(laid?.nodes)) set((s) => s && { ...s, laid: inPixels(laid) });
    })().catch((e) => { if (mine) setError(e); });
    return () => { mine = false; };
  }, [name, version, looks]);
  const doc = /** @type {any} */ (state?.d.document);
  const tasks = useMemo(() => tasksOf(doc), [doc]);
  const byName = useMemo(() => new Map(tasks.map((t) => [t.name, t])), [tasks]);
  if (!state) return error ? html`
    <div class="stack"><h1>Definition</h1>${trouble(error)}<p><a href="definitions">All definitions</a></p></div>` : loading();
  const { d, raw, laid } = state;
  const earlier = Math.floor(Number(route.value.query.get('since')));
  const chosen = route.value.query.get('task') || '';
  const task = byName.get(chosen);
  const { match, fields } = taskFilter(tasks);
  const taskRaw = task ? members(members(raw).tasks || '')[task.name] : '';
  return html`
    <div>
    <div class="head">
    <nav class="crumbs" aria-label="Where it belongs"><a href="definitions">Definitions</a></nav>
    <div class="title">
    <h1 class="user">${line(d.name, 120)}<span class="version">@${d.version}</span></h1>
    <a class="button" href=${'executions' + query({ action: d.name })}>Its executions</a>
    ${h(PauseOrder, { key: `${d.name} ${!!d.paused}`, of: 'actions', name: d.name, paused: !!d.paused, again: () => setLooks((n) => n + 1) })}
    <a class="button" href=${'register' + query({ from: `${d.name}@${d.version}` })}>Change …</a>
    <a class="button primary" href=${'new' + query({ action: d.name })}>Run</a></div>
    <dl class="line">
    <div><dt>Kind</dt><dd>${line(d.kind)}</dd></div>
    <div><dt>Registered</dt><dd>${since(d.created_at)}</dd></div>
    ${d.retired ? html`
    <div>
    <dt>Retired</dt>
    <dd class="late">
    ${since(d.retired.at)}
    ${d.retired.by ? html` by <span class="user">${line(d.retired.by, 60)}</span>` : null}
    ${d.retired.reason ? html`: <span class="user">${line(d.retired.reason, 200)}</span>` : null}</dd></div>` : null}
    ${d.paused ? html`
    <div>
    <dt>Paused</dt>
    <dd class="late">
    ${since(d.paused.at)}
    ${d.paused.by ? html` by <span class="user">${line(d.paused.by, 60)}</span>` : null}
    ${d.paused.until ? `, until ${clock(d.paused.until)}` : ''}
    ${d.paused.reason ? html`: <span class="user">${line(d.paused.reason, 200)}</span>` : null}</dd></div>` : null}
    <div>
    <dt>Version</dt>
    <dd class="row">
    ${d.version > 1 ? html`<a href=${withQuery({ version: String(d.version - 1), task: undefined })}>${d.version - 1}</a>` : null}
    <span class="num">${d.version}</span>
    ${version ? html`<a href=${withQuery({ version: undefined, task: undefined })}>latest</a>` : null}
    <a href=${runsOf(d.name, d.version)}>Runs of this version</a></dd></div></dl>
    ${doc?.description ? html`<p class="user">${plain(doc.description)}</p>` : null}</div>
    <div class="stack">
    ${error ? trouble(error) : null}
    ${laid
      ? panel({ title: count(tasks.length, 'task'), children: html`
      ${fields}
      ${h(Graph, { layout: laid, match: match && ((n) => match({ name: n })), selected: chosen, asked: chosen, href: (n) => withQuery({ task: n }), many: (n) => { const t = byName.get(n); return !!t && (t.foreach || t.repeat); },
    sub: (n) => { const t = byName.get(n); return t ? t.action + (t.foreach ? ' · for each item' : t.repeat ? ' · in rounds' : '') : ''; } })}` })
      : null}
    ${task ? panel({ title: html`Task <span class="user">${line(task.name)}</span>`, children: json(taskRaw, 'Task') }) : null}
    ${h(Aliases, { key: `aliases of ${name}`, name: d.name, shown: d.version })}
    ${h(Versions, { key: name, name: d.name, shown: d.version })}
    ${d.version > 1 ? h(Changed, { name: d.name, from: earlier >= 1 && earlier < d.version ? earlier : d.version - 1, shown: d.version, workflow: d.kind === 'workflow', raw }) : null}
    ${h(Document, { raw, name: `${d.name}@${d.version}` })}</div></div>`;
}

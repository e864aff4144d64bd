// What changed between two versions of a definition: its tasks as one graph of both, and the documents line by line, or of one task.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, request, query } from '../app/api.js';
import { route, go, withQuery } from '../app/router.js';
import { line, number } from '../app/text.js';
import { members } from '../part/members.js';
import { yaml } from '../part/yaml.js';
import { diff } from '../part/diff.js';
import { Graph, inPixels, marks } from '../part/graph.js';
import { trouble, loading, panel } from '../part/kit.js';

/** @typedef {import('../part/graph.js').Layout} Layout */

const named = 30; // tasks that are named above the graph, of each kind

/** The names of the tasks that were added, removed and changed, each a link to what changed in it, and the graph. @param {{layout: Layout, chosen: string}} p */
function tasks({ layout, chosen }) {
  const href = (/** @type {string} */ task) => withQuery({ changed: task });
  const kinds = /** @type {(keyof typeof marks)[]} */ (Object.keys(marks)).map((kind) => ({ kind, all: layout.nodes.filter((n) => n.change === kind) })).filter((k) => k.all.length > 0);
  if (kinds.length === 0) return html`<p class="body muted">${layout.nodes.length ? 'No task was added, removed or changed.' : null}</p>`;
  return html`
    <dl class="line body">
      ${kinds.map(({ kind, all }) => html`
        <div key=${kind}>
          <dt><b class=${marks[kind].tone} aria-hidden="true">${marks[kind].mark}</b> ${number(all.length)} ${kind}</dt>
          <dd class="row">
            ${all.slice(0, named).map((n) => html`
              <a key=${n.task} class="user" href=${href(n.task)} aria-current=${n.task === chosen ? 'true' : undefined}>
                ${line(n.task, 60)}
              </a>`)}
            ${all.length > named ? html`<span class="muted">and ${number(all.length - named)} more</span>` : null}
          </dd>
        </div>`)}
    </dl>
    ${h(Graph, { layout, selected: chosen, asked: chosen, href, called: 'What changed, as a graph' })}`;
}

/** @param {{name: string, from: number, shown: number, workflow: boolean, raw: string}} p from: an earlier version; raw: the document that is shown */
export function Changed({ name, from, shown, workflow, raw }) {
  const [old, set] = useState('');
  const [layout, lay] = useState(/** @type {Layout|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    let mine = true;
    set('');
    lay(null);
    setError(null);
    const failed = (/** @type {unknown} */ e) => { if (mine) setError(e); };
    const at = `api/v1/definitions/${encodeURIComponent(name)}`;
    request(at + query({ version: from })).then((res) => res.text()).then((t) => { if (mine) set(members(t).document); }).catch(failed);
    if (workflow) getJSON(`${at}/graph${query({ version: shown, since: from })}`).then((l) => { if (mine) lay(inPixels(l)); }).catch(failed);
    return () => { mine = false; };
  }, [name, from, shown]);
  const others = Array.from({ length: Math.min(shown - 1, 100) }, (_, i) => String(shown - 1 - i));
  const chosen = route.value.query.get('changed') || '';
  const [was, is] = [old, raw].map((doc) => (chosen ? members(members(doc).tasks || '')[chosen] : undefined));
  const one = was !== undefined || is !== undefined;
  return panel({
    title: `What changed since version ${from}`,
    actions: html`
      <select class="short-select" aria-label="Since version" value=${String(from)}
          onChange=${(/** @type {any} */ e) => go(withQuery({ since: e.target.value, changed: undefined }), { replace: true })}>
        ${others.map((v) => html`<option value=${v}>Version ${v}</option>`)}
      </select>`,
    children: html`
      ${trouble(error)}
      ${layout ? tasks({ layout, chosen: one ? chosen : '' }) : null}
      ${old === ''
        ? (error ? null : loading())
        : html`
          ${one ? html`
            <p class="body row">
              <strong>Task <span class="user">${line(chosen, 120)}</span></strong>
              <a href=${withQuery({ changed: undefined })}>The whole document</a>
            </p>` : null}
          ${one ? diff(was ? yaml(was) : '', is ? yaml(is) : '', 'What changed in the task', 'The task is the same') : diff(yaml(old), yaml(raw), 'What changed', 'The documents are the same')}`}`,
  });
}

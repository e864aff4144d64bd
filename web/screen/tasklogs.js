// The logs of a workflow are those of its tasks: a link to each.
import { html, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { poll } from '../app/stream.js';
import { line, number } from '../app/text.js';
import { shownAs, statusPill, open } from '../part/status.js';
import { copy, empty, loading, trouble } from '../part/kit.js';

/** @typedef {import('../types').Tasks} Tasks */

const each = 20; // executions of one task that are listed
const every = 3000;
const silent = new Set(['sleep', 'ask', 'wait']); // kinds that the engine runs write nothing

/** @param {import('./execution.js').Shown} p */
export function TaskLogs({ x }) {
  const [state, set] = useState({ id: '', tasks: /** @type {Tasks|null} */ (null), error: /** @type {unknown} */ (null) });
  const over = !open(x.status);
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      try {
        const tasks = await getJSON(`api/v1/executions/${x.id}/tasks${query({ items: each })}`);
        if (mine) set({ id: x.id, tasks, error: null });
      } catch (error) {
        if (mine) set((s) => ({ ...s, error }));
        throw error;
      }
      return over ? false : undefined;
    }, every);
    return () => {
      mine = false;
      stop();
    };
  }, [x.id, over]);
  if (state.id !== x.id || !state.tasks) return state.error ? trouble(state.error) : loading();
  const rows = state.tasks.tasks.flatMap((t) => {
    const all = (t.executions || []).filter((e) => !silent.has(e.kind || ''));
    return all.map((e, i) => ({ t, e, rest: i === all.length - 1 ? (t.created || 0) - (t.executions || []).length : 0 }));
  });
  const command = `pawl logs ${x.id}`;
  return html`
    <section class="panel">
      <div class="body">
        <p>
          A workflow writes nothing itself: its logs are those of its tasks. All of them together: <code class="user">
            ${command}
          </code> ${copy(command, 'Copy')}
        </p>
      </div>
      ${rows.length === 0
        ? empty('No logs', html`<p>No task that writes has begun.</p>`)
        : html`
          <div class="scroll">
            <table class="rows">
              <thead><tr><th scope="col">Task</th><th scope="col">Status</th></tr></thead>
              <tbody>
                ${rows.map(({ t, e, rest }) => html`
                  <tr key=${e.id}>
                    <td>
                      <a class="open-row user" href=${`executions/${e.id}/logs`}>
                        ${line(t.foreach ? `${t.name}[${e.index}]` : t.repeat ? `${t.name}, round ${e.index + 1}` : t.name, 120)}
                      </a>
                      ${rest > 0
                        ? html` <a class="muted small" href=${'executions' + query({ workflow: x.id })}>${number(rest)} more of it</a>`
                        : null}
                    </td>
                    <td>${statusPill({ status: shownAs(e) })}</td>
                  </tr>`)}
              </tbody>
            </table>
          </div>`}
    </section>`;
}

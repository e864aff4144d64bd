// Running a workflow again from where it failed: first the plan, which task is reused and which runs and why, then the order.
import { html, h, useEffect, useRef, useState } from '../vendor/preact.js';
import { post } from '../app/api.js';
import { newKey } from '../app/key.js';
import { go } from '../app/router.js';
import { line, count, number } from '../app/text.js';
import { actionName } from './executions.js';
import { look } from '../part/status.js';
import { trouble, loading, dialog, scroller } from '../part/kit.js';
import { Given, Paths, membersOf, nothing } from './rerunwith.js';

/** @typedef {import('../types').RerunPlan} RerunPlan */

/** How many tasks a plan shows; a workflow may have thousands. */
const shownTasks = 200;

/** @type {Record<string, string>} */
const words = { reuse: 'reused', run: 'runs', skip: 'skipped', break: 'fails', prevent: 'does not start', give: 'given', leave: 'left out' };

/** The summary of the plan, in a sentence. @param {RerunPlan} p */
export function sum(p) {
  if (!p.tasks) return 'It runs again as a whole: it is not a workflow whose tasks could be reused.';
  const some = p.tasks.filter((t) => t.decision === 'run' || t.decision === 'partly').length;
  const reused = p.reused === 0 ? 'No outcome is reused' : `${count(p.reused, 'outcome')} ${p.reused === 1 ? 'is' : 'are'} reused`;
  return some === 0 ? `${reused}, and nothing runs.` : `${reused}; ${count(some, 'task')} ${some === 1 ? 'runs' : 'run'}.`;
}

/** The plan for a task, with the items of a foreach counted. @param {import('../types').RerunTask} t */
function becomes(t) {
  if (t.decision === 'partly') return `${number(t.runs || 0)} run, ${number(t.reused || 0)} reused`;
  const n = (t.reused || 0) + (t.runs || 0);
  return (words[t.decision] || line(t.decision)) + (n > 1 ? ` (${number(n)})` : '');
}

/** @param {{plan: RerunPlan, chosen: string[], alone: boolean, choose: (task: string) => void}} p */
const table = ({ plan, chosen, alone, choose }) => html`
  <p role="status">${sum(plan)}</p>
  ${plan.error
    ? html`
      <p class="note bad user">
        It would end as ${line(look(plan.status || '').word.toLowerCase())}: ${line(plan.error.message, 500)}
      </p>`
    : null}
  ${plan.tasks ? scroller('Plan', html`
    <table>
      <thead><tr><th scope="col">Run</th><th scope="col">Task</th><th scope="col">Is</th><th scope="col">Why</th></tr></thead>
      <tbody>
        ${plan.tasks.slice(0, shownTasks).map((t) => html`
          <tr key=${t.task}>
            <td>
              <input type="checkbox" aria-label=${alone ? `Run ${t.task}` : `Run ${t.task} in any case`}
                  checked=${chosen.includes(t.task) || (!alone && t.decision === 'run')}
                  disabled=${!alone && !chosen.includes(t.task) && t.reused === undefined} onChange=${() => choose(t.task)} />
            </td>
            <td class="user">${line(t.task, 80)}</td>
            <td class="nowrap">${becomes(t)}</td>
            <td class="user">${line(t.reason, 300)}</td>
          </tr>`)}
      </tbody>
    </table>`) : null}
  ${(plan.within || []).map((w) => html`
    <h3 class="user">In ${line(w.path, 200)}: ${line(w.action, 80)}</h3>
    ${scroller(`Plan of ${w.path}`, html`
      <table>
        <thead><tr><th scope="col">Task</th><th scope="col">Is</th><th scope="col">Why</th></tr></thead>
        <tbody>
          ${w.tasks.slice(0, shownTasks).map((t) => html`
            <tr key=${t.task}>
              <td class="user">${line(t.task, 80)}</td>
              <td class="nowrap">${becomes(t)}</td>
              <td class="user">${line(t.reason, 300)}</td>
            </tr>`)}
        </tbody>
      </table>`)}`)}
  ${plan.tasks && plan.tasks.length > shownTasks ? html`
    <p class="muted small">${number(plan.tasks.length - shownTasks)} more tasks: pawl rerun ${plan.of} --plan shows all.</p>` : null}`;

/** @param {{x: import('../types').Execution, input: string}} p input: its text */
export function Rerun({ x, input }) {
  const [open, setOpen] = useState(false);
  const [definition, setDefinition] = useState('same');
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [alone, setAlone] = useState(false);
  const [given, setGiven] = useState(nothing);
  const [planned, setPlanned] = useState(/** @type {{of: string, plan: RerunPlan}|null} */ (null));
  const plan = planned && planned.plan;
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const key = useRef('');
  const body = `{${[`"definition":"${definition}"`, ...(chosen.length === 0 ? [] : [`"${alone ? 'only' : 'from'}":${JSON.stringify(chosen)}`]), ...membersOf(given)].join(',')}}`;
  useEffect(() => {
    if (!open) return undefined;
    let mine = true;
    key.current = newKey(); // the present request is another rerun
    setError(null);
    post(`api/v1/executions/${x.id}/rerun/plan`, body).then((p) => { if (mine) setPlanned({ of: body, plan: p }); }, (err) => { if (mine) setError(err); });
    return () => { mine = false; };
  }, [open, body, x.id]);
  const choose = (/** @type {string} */ task) => setChosen(chosen.includes(task) ? chosen.filter((t) => t !== task) : [...chosen, task]);
  const ask = () => {
    setDefinition('same');
    setChosen([]);
    setAlone(false);
    setGiven(nothing);
    setPlanned(null);
    setOpen(true);
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      const y = await post(`api/v1/executions/${x.id}/rerun`, body, { 'Idempotency-Key': key.current });
      setOpen(false);
      go(`executions/${y.id}`);
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  };
  return html`
    <button type="button" onClick=${ask}>Rerun …</button>
    ${dialog({ name: 'Rerun', open, close: () => setOpen(false) }, open ? html`
      <form onSubmit=${carryOut}>
        <div class="body plan">
          <h2>Rerun this workflow?</h2>
          <p>A new execution keeps what this one has completed and goes on from there. This one stays as it is.</p>
          <p class="muted"><span class="user">${actionName(x)}</span> <span class="mono small">${line(x.id)}</span></p>
          ${x.version ? html`
            <div class="field">
              <label for="rerun-definition">Definition</label>
              <select id="rerun-definition" value=${definition} onChange=${(/** @type {any} */ e) => setDefinition(e.target.value)}>
                <option value="same">the same: version ${x.version}</option>
                <option value="latest">the latest version</option>
              </select>
            </div>` : null}
          <p>
            <label>
              <input type="checkbox" checked=${alone} onChange=${() => setAlone(!alone)} />${' '}
              Run only the tasks that are chosen, and leave out what comes after them
            </label>
          </p>
          ${h(Paths, { chosen, choose, alone })}
          ${h(Given, { was: input || '{}', tasks: (plan?.tasks || []).map((t) => t.task), given, set: setGiven })}
          ${trouble(error)}
          ${plan ? table({ plan, chosen, alone, choose }) : error ? null : loading()}
        </div>
        <footer>
          <button type="button" onClick=${() => setOpen(false)}>Leave it</button>
          <button type="submit" class="primary" disabled=${busy || planned?.of !== body || !!error || (alone && chosen.length === 0)}>
            Rerun
          </button>
        </footer>
      </form>` : null)}`;
}

// Running again from where they failed all executions that the filters of the list select: first the plan, then the order, then the
// execution that carries it out.
import { html, useRef, useState } from '../vendor/preact.js';
import { post, query } from '../app/api.js';
import { newKey } from '../app/key.js';
import { go } from '../app/router.js';
import { line, clock, count, number, shortID } from '../app/text.js';
import { dialog, trouble } from '../part/kit.js';

/** @typedef {import('../types').RerunMany} Many */

/** What a plan comes to. @param {Many} p */
function sum(p) {
  const counted = p.counted || 0;
  const refused = p.refused || 0;
  return html`<p role="status">${counted < p.selected ? `Of the first ${number(counted)}, for which there was time: ` : ''}${number(counted - refused)} would run again, ${number(refused)} would be refused; ${count(p.reused || 0, 'outcome')} would be reused, and ${number(p.runs || 0)} or more executions run.</p>
    ${p.refusals ? html`<ul class="small">${p.refusals.map((r) => html`<li><span class="num">${number(r.count)}</span>, as <a class="mono" href=${`executions/${r.first}`}>${shortID(r.first)}</a>: <span class="user">${line(r.detail, 200)}</span></li>`)}</ul>` : null}
    ${p.searched_to ? html`<p class="muted">Executions from before ${clock(p.searched_to)} were not looked at.</p>` : null}
    <p>They run a few at a time, in an execution of their own, whose tasks say which became which. Cancelled, it starts no more. The old ones stay as they are.</p>`;
}

/** @param {{filter: Record<string, string|string[]|boolean|undefined>}} p */
export function RerunMany({ filter }) {
  const [open, setOpen] = useState(false);
  const [plan, setPlan] = useState(/** @type {Many|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const going = useRef(0);
  const key = useRef(''); // the same for a press that is repeated after an error
  const send = (/** @type {Record<string, unknown>} */ body) => post('api/v1/executions:rerun' + query(filter), body, { 'Idempotency-Key': key.current });
  const ask = async () => {
    const mine = ++going.current;
    key.current = newKey();
    setPlan(null);
    setError(null);
    setOpen(true);
    try {
      const p = await send({ plan: true });
      if (mine === going.current) setPlan(p);
    } catch (err) {
      if (mine === going.current) setError(err);
    }
  };
  const leave = () => {
    going.current++;
    setOpen(false);
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    const mine = ++going.current;
    setBusy(true);
    setError(null);
    try {
      const r = await send({});
      if (mine === going.current && r.execution) {
        setOpen(false);
        go(`executions/${r.execution}`);
      }
    } catch (err) {
      if (mine === going.current) setError(err);
    }
    setBusy(false);
  };
  const title = plan ? `Rerun ${count(plan.selected, 'execution')} from where each failed?` : 'Rerun all of these?';
  return html`<button type="button" onClick=${ask}>Rerun all …</button>
    ${dialog({ name: title, open, close: leave }, html`<form onSubmit=${carryOut}>
      <div class="body"><h2 aria-live="polite">${title}</h2>
        ${plan ? (plan.selected > 0 ? sum(plan) : html`<p>Nothing of what the filters select can be.</p>`) : error ? null : html`<p class="muted" role="status">Looking what the filters select …</p>`}
        ${trouble(error)}</div>
      <footer><button type="button" onClick=${leave}>Leave it</button>
        <button type="submit" class="primary" disabled=${busy || !plan || plan.selected === 0}>${plan && plan.selected > 0 ? `Rerun ${count(plan.selected, 'execution')}` : 'Rerun'}</button></footer></form>`)}`;
}

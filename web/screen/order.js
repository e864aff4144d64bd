// Ending an execution that has not ended, from wherever it stands in the way of another.
import { html, useState } from '../vendor/preact.js';
import { getJSON, post } from '../app/api.js';
import { line } from '../app/text.js';
import { open } from '../part/status.js';
import { trouble, dialog } from '../part/kit.js';

/** Kinds that run nothing that writes. */
export const silent = ['sleep', 'ask', 'wait', 'noop', 'input', 'output'];

/** Whether it reads what is sent to it while it runs. @param {import('../types').Execution} x */
export const interactive = (x) => x.kind === 'code' && /** @type {any} */ (x.input)?.interactive === true;

/** @typedef {{word: string, path: string, title: string, says: string, button: string, danger: boolean}} Ending */

/** How an open execution is ended now. Cancel and kill are one order; the word is that of what happens. @param {{status: string, kind?: string}} x @returns {Ending} */
export function endingOf(x) {
  const runs = x.status === 'running' || x.status === 'provisioning';
  if (runs && !silent.includes(x.kind || '') && x.kind !== 'workflow') {
    return { word: 'Kill', path: 'kill', title: 'Kill this execution?', says: 'What it runs is killed, with everything that it has started. It ends as cancelled once its worker has confirmed that nothing is left running.', button: 'Kill it', danger: true };
  }
  const says = x.kind === 'workflow' ? 'It starts nothing more, and its open tasks are cancelled: what they run is killed.' : 'It ends as cancelled and will not run.';
  return { word: 'Cancel', path: 'cancel', title: 'Cancel this execution?', says, button: 'Cancel the execution', danger: true };
}

/** @param {{id: string, status: string, name: string, again: () => void}} p name: for people */
export function Order({ id, status, name, again }) {
  const [order, setOrder] = useState(/** @type {Ending|null} */ (null));
  const [reason, setReason] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  if (!open(status)) return null;
  const ask = async () => {
    setReason('');
    setError(null);
    try {
      setOrder(endingOf(await getJSON(`api/v1/executions/${id}`)));
    } catch (e) {
      setOrder(endingOf({ status }));
      setError(e);
    }
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (!order) return;
    setBusy(true);
    try {
      await post(`api/v1/executions/${id}/${order.path}`, reason ? { reason } : {});
      setOrder(null);
      again();
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  };
  const o = order;
  return html`<button type="button" aria-label=${`End it: ${line(name, 80)} ${id}`} onClick=${ask}>End it</button>
    ${dialog({ name: o ? o.title : 'Order', open: o !== null, close: () => setOrder(null) }, o ? html`<form onSubmit=${carryOut}>
      <div class="body"><h2>${o.title}</h2><p>${o.says}</p>
        <p class="muted"><span class="user">${line(name, 120)}</span> <span class="mono small">${line(id)}</span></p>
        <div class="field"><label for="order-reason">Reason, kept in the history (optional)</label><input id="order-reason" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} /></div>
        ${trouble(error)}</div>
      <footer><button type="button" onClick=${() => setOrder(null)}>Leave it</button><button type="submit" class="danger" disabled=${busy}>${o.button}</button></footer></form>` : null)}`;
}

// The confirmation of an order to an execution, and the button that ends an execution that blocks another.
import { html, h, useRef, useState } from '../vendor/preact.js';
import { getJSON, post } from '../app/api.js';
import { newKey } from '../app/key.js';
import { line } from '../app/text.js';
import { open } from '../part/status.js';
import { trouble, dialog } from '../part/kit.js';
import { endingOf } from './order.js';

/**
 * @typedef {import('./order.js').Order} Order
 * @typedef {{id: string, name: string, order: Order|null, fault?: unknown, close: () => void, done: (x: import('../types').Execution) => void}} Asked
 *   name: for people; order: null while it is closed; fault: what could not be found out before; done: with what the server has answered
 */

/** @param {Asked & {order: Order}} p */
function Question({ id, name, order, fault, close, done }) {
  const [reason, setReason] = useState('');
  const [error, setError] = useState(fault);
  const [busy, setBusy] = useState(false);
  const key = useRef('');
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      key.current ||= newKey();
      const x = await (order.path === 'retry' ? post(`api/v1/executions/${id}/retry`, '', { 'Idempotency-Key': key.current }) : post(`api/v1/executions/${id}/${order.path}`, reason ? { reason } : {}));
      close();
      done(x);
    } catch (err) {
      setError(err);
      setBusy(false);
    }
  };
  return html`
    <form onSubmit=${carryOut}>
    <div class="body">
    <h2>${order.title}</h2>
    <p>${order.says}</p>
    <p class="muted"><span class="user">${line(name, 120)}</span> <span class="mono small">${line(id)}</span></p>
    ${order.path === 'retry' ? null : html`
    <div class="field">
    <label for="reason">Reason, kept in the history (optional)</label>
    <input id="reason" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} /></div>`}
    ${trouble(error)}</div>
    <footer>
    <button type="button" onClick=${close}>Leave it</button>
    <button type="submit" class=${order.danger ? 'danger' : 'primary'} disabled=${busy}>${order.button}</button></footer></form>`;
}

/** @param {Asked} p */
export function OrderDialog(p) {
  return dialog({ name: p.order ? p.order.title : 'Order', open: p.order !== null, close: p.close }, p.order ? h(Question, { ...p, order: p.order }) : null);
}

/** @param {{id: string, status: string, name: string, again: () => void}} p name: for people */
export function EndIt({ id, status, name, again }) {
  const [{ order, fault }, set] = useState(/** @type {{order: Order|null, fault?: unknown}} */ ({ order: null }));
  if (!open(status)) return null;
  const ask = async () => {
    try {
      set({ order: endingOf(await getJSON(`api/v1/executions/${id}`)) });
    } catch (e) {
      set({ order: endingOf({ status }), fault: e });
    }
  };
  return html`<button type="button" aria-label=${`End it: ${line(name, 80)} ${id}`} onClick=${ask}>End it</button>
    ${h(OrderDialog, { id, name, order, fault, close: () => set({ order: null }), done: again })}`;
}

// The aliases of a definition: which versions they stand for, who moved them there, and moving them to the version that is shown.
import { html, useEffect, useState } from '../vendor/preact.js';
import { getJSON, request } from '../app/api.js';
import { line } from '../app/text.js';
import { trouble, dialog, panel, since } from '../part/kit.js';

/** @typedef {import('../types').Alias} Alias */

/** Which versions an alias stands for: "3", or "90% 3, 10% 4". @param {Alias} a */
export function standsFor(a) {
  const rest = a.to.reduce((left, t) => left - (t.percent || 0), 100);
  if (a.to.length === 1) return `version ${a.to[0].version}`;
  return a.to.map((t) => `version ${t.version} (${+(t.percent || rest).toFixed(2)}%)`).join(', ');
}

/** @param {{name: string, shown: number}} p */
export function Aliases({ name, shown }) {
  const [all, set] = useState(/** @type {Alias[]|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [order, setOrder] = useState(/** @type {{alias: string, how: 'to'|'back'|'remove'|'fresh'}|null} */ (null));
  const [refused, setRefused] = useState(/** @type {unknown} */ (null));
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const at = `api/v1/definitions/${encodeURIComponent(name)}/aliases`;
  const load = () => getJSON(at).then((p) => set(p.aliases), setError);
  useEffect(() => { load(); }, [name]);
  const ask = (/** @type {string} */ alias, /** @type {'to'|'back'|'remove'|'fresh'} */ how) => {
    setRefused(null);
    setReason('');
    setOrder({ alias, how });
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (!order) return;
    setBusy(true);
    try {
      const body = { ...(order.how === 'back' ? { back: true } : order.how === 'remove' ? { remove: true } : { to: [{ version: shown }] }), ...(reason ? { reason } : {}) };
      await request(`${at}/${encodeURIComponent(order.alias)}`, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
      setOrder(null);
      await load();
    } catch (err) {
      setRefused(err);
    }
    setBusy(false);
  };
  if (error) return trouble(error);
  if (!all) return null;
  const alone = (/** @type {Alias} */ a) => a.to.length === 1 && a.to[0].version === shown;
  return panel({
    title: 'Aliases',
    actions: html`<button type="button" onClick=${() => ask('', 'fresh')}>New alias …</button>`,
    children: html`
      ${all.length === 0
        ? html`
        <div class="body">
        <p class="muted">
        None yet. An alias, such as ${line(name, 60)}@stable, stands for a version and is moved from one to another.</p></div>`
        : html`
        <div class="scroll">
        <table class="rows">
        <thead>
        <tr>
        <th scope="col">Alias</th>
        <th scope="col">Stands for</th>
        <th scope="col">Since</th>
        <th scope="col">By</th>
        <th scope="col"><span class="sr">Orders</span></th></tr></thead>
        <tbody>
        ${all.map((a) => html`
        <tr key=${a.alias}>
        <td class="user nowrap">${line(a.alias)}</td>
        <td class="stands">${standsFor(a)}${a.reason ? html`<div class="muted small user">${line(a.reason, 120)}</div>` : null}</td>
        <td class="nowrap">${since(a.at || '')}</td>
        <td class="user nowrap">${line(a.by || '', 60)}</td>
        <td class="right">
        <div class="row">
        ${alone(a) ? null : html`
        <button type="button" aria-label=${`Move to ${shown}: ${a.alias}`} onClick=${() => ask(a.alias, 'to')}>
        Move to ${shown}</button>`}
        ${a.number > 1 ? html`
        <button type="button" aria-label=${`Back: ${a.alias}`} onClick=${() => ask(a.alias, 'back')}>Back</button>` : null}
        <button type="button" aria-label=${`Remove: ${a.alias}`} onClick=${() => ask(a.alias, 'remove')}>Remove</button></div></td></tr>`)}
        </tbody></table></div>`}
      ${dialog({ name: 'Move an alias', open: !!order, close: () => setOrder(null) }, order ? html`
      <form onSubmit=${carryOut}>
      <div class="body">
      <h2>
      ${order.how === 'back'
        ? html`Move <span class="user">${line(order.alias)}</span> back to where it stood?`
        : order.how === 'remove' ? html`Remove <span class="user">${line(order.alias)}</span>?`
        : order.how === 'fresh' ? `Let an alias stand for version ${shown}`
        : html`Let <span class="user">${line(order.alias)}</span> stand for version ${shown}?`}</h2>
      <p>
      ${order.how !== 'remove'
        ? 'What is submitted from now on gets it.'
        : order.alias === 'latest' ? 'The name alone stands for the newest version again.'
        : 'What asks for it is refused from now on.'} What has begun goes on as it is.</p>
      ${order.how === 'fresh' ? html`
      <div class="field">
      <label for="alias">Alias, such as stable</label>
      <input id="alias" required value=${order.alias}
          onInput=${(/** @type {any} */ e) => setOrder({ ...order, alias: e.target.value })} /></div>` : null}
      <div class="field">
      <label for="why-move">Reason, for those who look at it later (optional)</label>
      <input id="why-move" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} /></div>
      ${trouble(refused)}</div>
      <footer>
      <button type="button" onClick=${() => setOrder(null)}>Leave it</button>
      <button type="submit" class="primary" disabled=${busy}>
      ${order.how === 'remove' ? 'Remove the alias' : 'Move the alias'}</button></footer></form>` : null)}`,
  });
}

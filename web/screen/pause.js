// Pausing and resuming a queue, a worker, an action or the execution of a workflow.
import { html, useState } from '../vendor/preact.js';
import { post } from '../app/api.js';
import { line } from '../app/text.js';
import { trouble, dialog } from '../part/kit.js';

/** @type {Record<string, {one: string, pausing: string, resuming: string}>} */
const words = {
  queues: { one: 'queue', pausing: 'No worker takes anything from it until it is resumed. What runs goes on, and submissions are accepted.', resuming: 'Workers take from it again, at once.' },
  workers: { one: 'worker', pausing: 'It is given nothing more until it is resumed. What it runs goes on, to its end.', resuming: 'It is given work again, at once.' },
  actions: { one: 'definition', pausing: 'No execution of it begins until it is resumed, neither by itself nor as the task of a workflow. What runs goes on, and submissions are accepted.', resuming: 'Its executions begin again, at once.' },
  executions: { one: 'workflow', pausing: 'It starts no more tasks until it is resumed, and neither do workflows among its tasks. Tasks that have begun go on.', resuming: 'It starts tasks again, at once, and so do workflows among its tasks.' },
};

/** @param {{of: 'queues'|'workers'|'actions'|'executions', name: string, paused: boolean, again: () => void}} p */
export function PauseOrder({ of, name, paused, again }) {
  const [open, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const [span, setSpan] = useState('');
  const [stops, setStops] = useState(false); // the timers of a workflow
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const w = words[of];
  const word = paused ? 'Resume' : 'Pause';
  const ask = () => {
    setError(null);
    setReason('');
    setSpan('');
    setStops(false);
    setOpen(true);
  };
  const carryOut = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      await post(`api/v1/${of}/${encodeURIComponent(name)}/${word.toLowerCase()}`, { ...(reason ? { reason } : {}), ...(span && !paused ? { for: span.trim() } : {}), ...(stops && !paused ? { timers: 'stop' } : {}) });
      setOpen(false);
      again();
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  };
  return html`
    <button type="button" aria-label=${`${word}: ${line(name, 120)}`} onClick=${ask}>${word}</button>
    ${dialog({ name: `${word} a ${w.one}`, open, close: () => setOpen(false) }, html`
    <form onSubmit=${carryOut}>
    <div class="body">
    <h2>${word} this ${w.one}?</h2>
    <p class="user">${line(name, 120)}</p>
    <p>${paused ? w.resuming : w.pausing}</p>
    <div class="field">
    <label for="pause-reason">Reason, for those who look at it later (optional)</label>
    <input id="pause-reason" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)} /></div>
    ${paused ? null : html`
    <div class="field">
    <label for="pause-for">For how long, as 30m or 2h; empty: until it is resumed</label>
    <input id="pause-for" value=${span} onInput=${(/** @type {any} */ e) => setSpan(e.target.value)} /></div>`}
    ${of === 'executions' && !paused
      ? html`
      <label class="check">
      <input type="checkbox" checked=${stops} aria-describedby="pause-timers"
          onChange=${(/** @type {any} */ e) => setStops(e.target.checked)} />Its timers stand still too</label>
      <p id="pause-timers" class="muted small">
      Once it is resumed, its timeouts and what only waits among its tasks, as sleeps do, go on from where they stood.${' '}
      Tasks that run keep their own timeouts.</p>`
      : null}
    ${trouble(error)}</div>
    <footer>
    <button type="button" onClick=${() => setOpen(false)}>Leave it</button>
    <button type="submit" class="primary" disabled=${busy}>${word} the ${w.one}</button></footer></form>`)}`;
}

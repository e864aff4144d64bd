// Saved views of the list of executions: addresses with a name, kept in this browser. The address determines the view.
import { html, h, useState } from '../vendor/preact.js';
import { route } from '../app/router.js';
import { line } from '../app/text.js';
import { ordered, viewsOf, withView } from '../part/views.js';
import { dialog } from '../part/kit.js';
import { viewsKept } from './executions.js';

/** @typedef {import('../part/views.js').View} View */

/** The views stored in this browser. */
export const keptViews = () => {
  try {
    return viewsOf(localStorage.getItem(viewsKept));
  } catch {
    return []; // a browser may keep nothing for this page
  }
};

export function Views() {
  const [all, set] = useState(keptViews);
  const [open, setOpen] = useState(false);
  const [name, setName] = useState('');
  const [failed, setFailed] = useState(false);
  const here = ordered(route.value.query);
  const current = all.find((v) => ordered(v.query) === here);
  const keep = (/** @type {(all: View[]) => View[]} */ change) => {
    const views = change(keptViews()); // another tab may have stored one meanwhile
    set(views);
    try {
      localStorage.setItem(viewsKept, JSON.stringify(views));
      setFailed(false);
      return true;
    } catch {
      setFailed(true);
      return false;
    }
  };
  const save = (/** @type {Event} */ e) => {
    e.preventDefault();
    if (name.trim() && keep((kept) => withView(kept, { name: name.trim().slice(0, 60), query: here }))) setOpen(false);
  };
  if (all.length === 0 && here === '') return null;
  return html`
    <div class="row views" role="group" aria-label="Saved views">
      ${all.map((v) => html`
        <a key=${v.name} class="button toggle" href=${'executions' + (v.query ? `?${v.query}` : '')}
            aria-current=${v === current ? 'page' : undefined}>
          <span class="user">${line(v.name, 60)}</span>
        </a>`)}
      ${current
        ? html`
          <button type="button" class="plain" onClick=${() => keep((kept) => kept.filter((v) => v.name !== current.name))}>
            Forget this view
          </button>`
        : here === '' ? null
        : html`
          <button type="button" class="plain" onClick=${() => { setName(''); setFailed(false); setOpen(true); }}>
            Save this view
          </button>`}
      ${dialog({ name: 'Save this view', open, close: () => setOpen(false) }, html`
        <form onSubmit=${save}>
          <div class="body">
            <h2>Save this view</h2>
            <p>The filters as they are now, under a name. Views are kept in this browser; to share one, send the address.</p>
            <div class="field">
              <label for="view-name">Name</label>
              <input id="view-name" value=${name} maxlength="60" onInput=${(/** @type {any} */ e) => setName(e.target.value)} />
            </div>
            ${all.some((v) => v.name === name.trim())
              ? html`<p class="hint">It takes the place of the view that has this name.</p>`
              : null}
            ${failed ? html`
              <p class="note bad" role="alert">This browser keeps nothing for the page, so the view cannot be saved.</p>` : null}
          </div>
          <footer>
            <button type="button" onClick=${() => setOpen(false)}>Leave it</button>
            <button type="submit" class="primary" disabled=${name.trim() === ''}>Save</button>
          </footer>
        </form>`)}
    </div>`;
}

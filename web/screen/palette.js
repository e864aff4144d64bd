// The search over all screens: screens, the orders of the one that is shown, definitions, saved views, ids, labels. Ctrl K opens it.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { getJSON } from '../app/api.js';
import { go } from '../app/router.js';
import { places, shortcuts } from '../app/keys.js';
import { theme, themes, setTheme } from '../app/theme.js';
import { line } from '../app/text.js';
import { choices } from '../part/palette.js';
import { dialog } from '../part/kit.js';
import { keptViews } from './views.js';

/** @typedef {import('../part/palette.js').Choice} Choice */

/** Orders of the screen beneath, then screens, then what the page itself can do. @param {() => void} help @returns {Choice[]} */
const known = (help) => [
  ...shortcuts().filter((s) => s.name !== '' && s.key !== 'Escape').map((s) => ({ name: s.name, hint: 'On this screen', keys: s.key, act: () => (s.element.matches('input') ? s.element.focus() : s.element.click()) })),
  ...places.map((p) => ({ name: p.name, hint: 'Screen', keys: `g ${p.key}`, to: p.path })),
  { name: 'Register definitions', hint: 'Screen', to: 'register' }, { name: 'Signals', hint: 'Screen', to: 'signals' }, { name: 'Webhooks', hint: 'Screen', to: 'webhooks' }, { name: 'Compare two executions', hint: 'Screen', to: 'compare' },
  ...themes.filter((t) => t !== theme.value).map((t) => ({ name: `Theme: ${t}`, hint: 'Page', act: () => setTheme(t) })),
  { name: 'Keys', hint: 'Page', keys: '?', act: help },
];

/** @param {{close: () => void, help: () => void}} p */
export function Palette({ close, help }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [first] = useState(() => known(help));
  const [named, setNamed] = useState(/** @type {Choice[]} */ ([]));
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => {
    let mine = true;
    field.current?.focus();
    const views = keptViews().map((v) => ({ name: v.name, hint: 'Saved view', to: `executions?${v.query}` }));
    setNamed(views);
    getJSON('api/v1/definitions?limit=500').then((/** @type {import('../types').DefinitionPage} */ page) => {
      if (!mine) return;
      setNamed([...page.definitions.map((d) => ({ name: d.name, hint: 'Definition', to: `definitions/${encodeURIComponent(d.name)}` })),
        ...page.definitions.map((d) => ({ name: `Run ${d.name}`, hint: 'New execution', to: `new?action=${encodeURIComponent(d.name)}` })), ...views]);
    }, () => {}); // the rest works without them
    return () => { mine = false; };
  }, []);
  const all = choices(text, first, named);
  const chosen = Math.min(at, all.length - 1);
  const take = (/** @type {Choice|undefined} */ c) => {
    if (!c) return;
    close();
    // The dialog returns the focus when it closes; the chosen action may move it.
    setTimeout(() => (c.to !== undefined ? go(c.to) : c.act?.()), 0);
  };
  const keyed = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'ArrowDown') setAt((chosen + 1) % all.length);
    else if (e.key === 'ArrowUp') setAt((chosen + all.length - 1) % all.length);
    else if (e.key === 'Enter') take(all[chosen]);
    else return;
    e.preventDefault();
  };
  return dialog({ name: 'Search', open: true, close }, html`
    <div class="palette">
      <input ref=${field} role="combobox" aria-label="Search" aria-expanded="true" aria-controls="found" aria-autocomplete="list"
          aria-activedescendant=${all.length > 0 ? `found-${chosen}` : undefined}
          placeholder="A screen, an order, an id, a definition, a label …" value=${text} spellcheck=${false} autocomplete="off"
          maxlength="300" onInput=${(/** @type {any} */ e) => { setText(e.target.value); setAt(0); }} onKeyDown=${keyed} />
      <ul id="found" role="listbox" aria-label="What fits">
        ${all.map((c, i) => html`
          <li key=${`${c.hint} ${c.name}`} id=${`found-${i}`} role="option" aria-selected=${i === chosen ? 'true' : 'false'}
              onPointerMove=${() => setAt(i)} onClick=${() => take(c)}>
            <span class="user cut">${line(c.name, 120)}</span>
            <span class="small muted nowrap">${c.hint}</span>
            ${c.keys ? html`<kbd>${c.keys}</kbd>` : html`<span></span>`}
          </li>`)}
      </ul>
    </div>`);
}

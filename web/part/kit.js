// The small parts that every screen uses.
import { html, h, signal, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { line, plain, copied, ago, clock } from '../app/text.js';
import { Problem } from '../app/api.js';

/** Text of a user, in one line. @param {unknown} s @param {string} [cls] */
export const user = (s, cls = '') => html`<span class=${`user ${cls}`}>${line(s)}</span>`;

/** The current time, for ages and running times, updated once a second while the tab is visible. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

/** @param {{at: string|undefined}} p */
function Ago({ at }) {
  if (!at) return html`<span class="muted">–</span>`;
  return html`<time datetime=${at} title=${clock(at, true)}>${ago(now.value - Date.parse(at))}</time>`;
}

/** @param {string|undefined} at */
export const since = (at) => h(Ago, { at });

/** @param {{label: string, text: string, shortcut?: string}} p */
function Copy({ label, text, shortcut }) {
  const [done, setDone] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(copied(text));
      setDone('Copied');
    } catch {
      setDone('Not allowed here');
    }
    setTimeout(() => setDone(''), 2000);
  };
  return html`
    <button class="plain icon" type="button" aria-label=${label} title=${label} aria-keyshortcuts=${shortcut} onClick=${copy}>
      ${done ? html`<span class="small" role="status">${done}</span>` : html`
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" class="shape">
          <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" class="line" />
          <path d="M10.5 3.2v-.4a1.3 1.3 0 0 0-1.3-1.3H3.8a1.3 1.3 0 0 0-1.3 1.3v5.4a1.3 1.3 0 0 0 1.3 1.3h.4" class="line" />
        </svg>`}
    </button>`;
}

/** @param {string} text @param {string} label @param {string} [shortcut] the key that presses it */
export const copy = (text, label, shortcut) => h(Copy, { text, label, shortcut });

/** An id, shortened to its distinctive part, with a button that copies all of it. @param {string} id */
export const idText = (id) => html`
  <span class="id"><span class="mono muted cut" title=${id}>${line(id)}</span>${copy(id, 'Copy the id', 'y')}</span>`;

/** @param {Record<string, string>|undefined} labels @param {(name: string, value: string) => string} [href] */
export const labelChips = (labels, href) => {
  const all = Object.entries(labels || {});
  if (all.length === 0) return null;
  return html`<span class="labels">${all.slice(0, 12).map(([k, v]) => {
    const inner = html`<b class="user">${line(k, 60)}</b><span class="user cut">${line(v, 80)}</span>`;
    return href ? html`<a class="chip above" href=${href(k, v)}>${inner}</a>` : html`<span class="chip">${inner}</span>`;
  })}${all.length > 12 ? html`<span class="chip">+${all.length - 12}</span>` : null}</span>`;
};

/** An error, in the API's words. @param {unknown} e */
export function trouble(e) {
  if (!e) return null;
  const p = e instanceof Problem ? e.problem : null;
  return html`
    <div class="note bad" role="alert">
      <p class="user">${plain(p ? p.detail || p.title : e instanceof Error ? e.message : e)}</p>
      ${p?.errors && p.errors.length > 0 && !(p.errors.length === 1 && p.detail?.includes(p.errors[0].message)) ? html`
        <ul>
          ${p.errors.slice(0, 20).map((f) => html`
            <li class="user">
              ${f.line ? `line ${f.line}: ` : ''}
              ${f.path ? html`<code>${line(f.path)}</code> ` : null}
              ${plain(f.message)}
              ${f.fix ? html` <span>(${plain(f.fix)})</span>` : null}
            </li>`)}
        </ul>` : null}
      ${p?.request_id ? html`<p class="small">Request ${line(p.request_id)}</p>` : null}
    </div>`;
}

/** @param {{title: string, children: any, actions?: any}} p */
export const panel = ({ title, children, actions }) => html`
  <section class="panel"><header><h2>${title}</h2>${actions}</header>${children}</section>`;

/** Content wider than a narrow window scrolls separately, also by keys. @param {string} name @param {any} children @param {'wide'|''} [cls] wide: a table of many columns */
export const scroller = (name, children, cls = '') => html`
  <div class=${`scroll ${cls}`} tabindex="0" role="group" aria-label=${name}>${children}</div>`;

/** @param {string} title @param {any} children */
export const empty = (title, children) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

export const loading = () => html`<div class="empty" role="status">Loading …</div>`;

/** @param {{name: string, open: boolean, close: () => void, children: any}} p */
function Dialog({ name, open, close, children }) {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  // How many events of close() are still to come: they may arrive after the dialog was opened again.
  const told = useRef(0);
  const shut = () => { told.current++; ref.current?.close(); };
  useLayoutEffect(() => { // before the next key
    const d = ref.current;
    if (open && !d?.open) d?.showModal();
    if (!open && d?.open) shut();
  }, [open]);
  const leave = () => { shut(); close(); }; // by the event alone a screen would not open it for a key in between
  // Selecting text from a field to beyond the edge also ends in a click on the dialog: only a press outside closes it.
  const outside = useRef(false);
  // Enter that is still held from opening the dialog repeats: it must not answer the dialog.
  const pressed = (/** @type {KeyboardEvent} */ e) => {
    if (e.key !== 'Enter' || !e.repeat || (/** @type {HTMLElement} */ (e.target)).matches('textarea')) return;
    e.preventDefault();
    e.stopPropagation();
  };
  const closed = () => { if (told.current > 0) told.current--; else close(); };
  return html`
    <dialog ref=${ref} aria-label=${name} onClose=${closed} onCancel=${leave} onKeyDownCapture=${pressed}
        onPointerDown=${(/** @type {PointerEvent} */ e) => { outside.current = e.target === ref.current; }}
        onClick=${(/** @type {MouseEvent} */ e) => { if (outside.current && e.target === ref.current) leave(); }}>
      ${open ? children : null}
    </dialog>`;
}

/** A modal dialog; the browser keeps the focus inside and gives it back. @param {{name: string, open: boolean, close: () => void}} p @param {any} children */
export const dialog = (p, children) => h(Dialog, { ...p, children });

/** The title of the tab. @param {string} t */
export function useTitle(t) {
  useEffect(() => { document.title = t ? `${line(t)} – Pawl` : 'Pawl'; }, [t]);
}

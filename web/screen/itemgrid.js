// All executions of one task of a workflow as a grid: a cell for each, on one canvas. Of thousands one is in the document, the one that keys or the pointer are at.
import { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { route, go, withQuery } from '../app/router.js';
import { theme } from '../app/theme.js';
import { duration, number, count } from '../app/text.js';
import { places, ran, stepTo, nextIll } from '../part/items.js';
import { look, shapeOf } from '../part/status.js';
import { now, trouble, loading } from '../part/kit.js';
import { useItems } from './taskitems.js';

/** @typedef {import('../types').Task} Task */
/** @typedef {import('../types').TaskItem} Item */

const few = 2000; // items whose cells are large
const none = 'pending'; // how an item without an execution is drawn

const dark = matchMedia('(prefers-color-scheme: dark)');
const forced = matchMedia('(forced-colors: active)');

/** A cell with the shape of a status, as it is drawn again and again. @param {string} status @param {number} size @param {CSSStyleDeclaration} style what gives the colours */
function stamp(status, size, style) {
  const c = document.createElement('canvas');
  c.width = c.height = size;
  const g = /** @type {CanvasRenderingContext2D} */ (c.getContext('2d'));
  g.scale(size / 18, size / 18); // one of 18 on each side is the gap
  g.translate(1, 1);
  g.lineCap = 'round';
  for (const [cls, d] of shapeOf(status)) {
    const p = new Path2D(d);
    g.globalAlpha = cls.includes('track') ? 0.4 : 1;
    g.setLineDash(cls.includes('dotted') ? [2.2, 2.67] : []);
    g.lineWidth = 1.9;
    g.strokeStyle = cls === 'cut' ? style.backgroundColor : style.color;
    g.fillStyle = style.color;
    if (cls === 'fill') g.fill(p);
    else g.stroke(p);
  }
  return c;
}

/** The description of an item. @param {number} index @param {Item|undefined} i @param {Task} task @param {number} t ms since the workflow was created */
function words(index, i, task, t) {
  const name = task.repeat ? `Round ${number(index + 1)}` : `Item ${number(index)}`;
  if (!i) return `${name}: Not begun`;
  const length = ran(i, t);
  return `${name}: ${look(i.status).word}${i.attempt > 1 ? `, attempt ${i.attempt}` : ''}${Number.isNaN(length) ? '' : `, ran ${duration(length)}`}`;
}

/** @param {{id: string, task: Task}} p id: of the workflow */
export function ItemGrid({ id, task }) {
  const { page, error } = useItems({ id, task, wanted: '' });
  const frame = useRef(/** @type {HTMLElement|null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const byKey = useRef(-1); // the cell that a key leads to, until it has been brought into view
  const [cols, setCols] = useState(0);
  const [painted, paint] = useState(0);
  const [cursor, set] = useState(Math.max(0, Math.floor(Number(route.value.query.get('item'))) || 0));
  const items = useMemo(() => places(page?.items || []), [page]);
  const total = page?.next_cursor ? items.length : Math.max(items.length, Math.min(task.total || 0, 10000));
  const at = Math.max(0, Math.min(cursor, total - 1));
  const size = total > few ? 12 : 16;
  const shown = page !== null;
  useEffect(() => {
    if (!frame.current) return;
    const seen = new ResizeObserver(([e]) => setCols(Math.max(1, Math.floor(e.contentRect.width / size))));
    seen.observe(frame.current);
    return () => seen.disconnect();
  }, [shown, size]);
  useEffect(() => {
    const again = () => paint((n) => n + 1);
    for (const m of [dark, forced]) m.addEventListener('change', again);
    return () => { for (const m of [dark, forced]) m.removeEventListener('change', again); };
  }, []);
  useEffect(() => {
    const c = canvas.current;
    const g = c?.getContext('2d');
    if (!c || !g || cols === 0) return;
    const sharp = Math.min(devicePixelRatio || 1, 2);
    c.width = cols * size * sharp;
    c.height = Math.ceil(total / cols) * size * sharp;
    /** @type {Record<string, HTMLCanvasElement>} */
    const stamps = {};
    for (let n = 0; n < total; n++) {
      const status = items[n]?.status || none;
      if (!stamps[status]) {
        c.className = look(status).tone;
        stamps[status] = stamp(status, size * sharp, getComputedStyle(c));
      }
      g.drawImage(stamps[status], (n % cols) * size * sharp, Math.floor(n / cols) * size * sharp);
    }
  }, [items, total, cols, size, theme.value, painted]);
  useEffect(() => {
    if (byKey.current !== at) return; // another key may have come before this was drawn
    byKey.current = -1;
    frame.current?.querySelector('a')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  if (!page) return error ? trouble(error) : loading();
  const t = now.value - Date.parse(page.since);
  const item = items[at];
  const href = item && `executions/${item.id}`;
  const said = words(at, item, task, t);
  const move = (/** @type {number} */ to) => {
    byKey.current = to;
    set(to);
  };
  const keep = (/** @type {number} */ n) => go(withQuery({ task: task.name, item: String(n) }), { replace: true }); // the way back leads to the same cell
  const enter = (/** @type {number} */ n) => {
    if (!items[n]) return;
    keep(n);
    go(`executions/${items[n].id}`);
  };
  const keyed = (/** @type {KeyboardEvent} */ e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const to = stepTo(e.key, at, cols, total);
    if (to < 0 && e.key !== 'Enter' && e.key !== ' ') return;
    e.preventDefault();
    e.stopPropagation();
    if (to < 0) enter(at);
    else if (to !== at) move(to);
  };
  const under = (/** @type {any} */ e) => {
    const r = /** @type {HTMLCanvasElement} */ (canvas.current).getBoundingClientRect();
    const [x, y] = [Math.floor((e.clientX - r.left) / size), Math.floor((e.clientY - r.top) / size)];
    const n = y * cols + x;
    return x >= 0 && x < cols && n >= 0 && n < total ? n : -1;
  };
  const pointed = (/** @type {any} */ e) => {
    const n = under(e);
    if (n >= 0) set(n);
  };
  const clicked = (/** @type {any} */ e) => { // a cell that the pointer has only just reached has no link yet; a finger chooses first, because cells are small
    if (!e.target.closest('a') && e.pointerType !== 'touch') enter(under(e));
  };
  const bad = nextIll(items, at);
  return html`
    ${trouble(error)}
    <div class="items" ref=${frame} role="listbox" tabindex="0" aria-label=${task.repeat ? 'Rounds' : 'Items'}
        aria-activedescendant=${`item-${at}`} aria-describedby="items-keys" onKeyDown=${keyed} onPointerMove=${pointed}
        onPointerDown=${pointed} onClick=${clicked}>
      <canvas ref=${canvas} aria-hidden="true"
          style=${{ width: `${cols * size}px`, height: `${Math.ceil(total / Math.max(1, cols)) * size}px` }}></canvas>
      ${cols > 0
        ? html`
          <a key=${at} id=${`item-${at}`} role="option" tabindex="-1" aria-selected="true" aria-setsize=${total}
              aria-posinset=${at + 1} aria-label=${said} href=${href} onClick=${() => keep(at)}
              style=${{ left: `${(at % cols) * size - 1}px`, top: `${Math.floor(at / cols) * size - 1}px`,
                width: `${size + 2}px`, height: `${size + 2}px` }}></a>`
        : null}
    </div>
    <div class="row">
      ${href ? html`<a class="num" href=${href} onClick=${() => keep(at)}>${said}</a>` : html`<span class="num">${said}</span>`}
      ${bad < 0 || bad === at ? null : html`<button type="button" onClick=${() => move(bad)}>Next that did not complete</button>`}
      <span class="muted small" id="items-keys">Arrow keys lead from cell to cell, Enter opens one.</span>
    </div>
    ${page.next_cursor ? html`
      <p class="muted small">Here are the first ${count(items.length, 'item')} in their order: there are more.</p>` : null}`;
}

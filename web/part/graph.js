// A workflow as a graph, which the server lays out. Of a large graph the document contains only the visible part and a map.
import { html, h, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { line, count } from '../app/text.js';
import { statusShape, look } from './status.js';

/**
 * @typedef {{task: string, action?: string, layer?: number, x: number, y: number, w: number, h: number, change?: 'added'|'removed'|'changed'}} Node
 * @typedef {{from: string, to: string, points: {x: number, y: number}[], change?: 'added'|'removed'}} Edge
 * @typedef {{width: number, height: number, nodes: Node[], edges: Edge[]}} Layout
 */

const box = { w: 176, h: 52 };

/** How a task has changed since another version. */
export const marks = { added: { mark: '+', tone: 'good' }, removed: { mark: '−', tone: 'bad' }, changed: { mark: '≠', tone: 'late' } };

/**
 * A layout in pixels: the server's units are abstract.
 * @param {Layout} l
 * @returns {Layout}
 */
export function inPixels(l) {
  const first = l.nodes[0];
  if (!first || !first.w || !first.h) return l;
  const sx = box.w / first.w;
  const sy = box.h / first.h;
  return {
    width: l.width * sx, height: l.height * sy,
    nodes: l.nodes.map((n) => ({ ...n, x: n.x * sx, y: n.y * sy, w: n.w * sx, h: n.h * sy })),
    edges: l.edges.map((e) => ({ ...e, points: e.points.map((p) => ({ x: p.x * sx, y: p.y * sy })) })),
  };
}

/** A soft curve through the points of an edge. @param {{x: number, y: number}[]} points */
function path(points) {
  let d = `M${points[0].x} ${points[0].y}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    const bend = (b.x - a.x) / 2;
    d += `C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
  }
  return d;
}

/** How the executions of a task divide, as a bar. @param {Record<string, number>|undefined} counts @param {number} total */
export const countBar = (counts, total) => html`
  <span class="bar" aria-hidden="true">
  ${Object.entries(counts || {}).filter(([s]) => !['requested', 'scheduled', 'pending'].includes(s))
  .map(([s, n]) => html`<i class=${look(s).tone} style=${{ width: `${(100 * n) / Math.max(1, total)}%` }}></i>`)}</span>`;

/**
 * Where an arrow key leads from a task: along an edge, to the nearest task at its end, or up and down within a layer; '' for none.
 * @param {Layout} l @param {string} from @param {string} key
 */
export function along({ nodes, edges }, from, key) {
  const at = nodes.find((n) => n.task === from);
  if (!at) return '';
  const ends = key === 'ArrowRight' ? edges.filter((e) => e.from === from).map((e) => e.to) : key === 'ArrowLeft' ? edges.filter((e) => e.to === from).map((e) => e.from) : [];
  const way = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0;
  const fit = nodes.filter((n) => (way === 0 ? ends.includes(n.task) : n.x === at.x && (n.y - at.y) * way > 0));
  return fit.sort((a, b) => Math.abs(a.y - at.y) - Math.abs(b.y - at.y))[0]?.task || '';
}

const whole = 200; // boxes of a graph that is in the document as a whole
const around = 240; // pixels beyond the view that are also drawn, so that Tab and a wheel find something
const mostEdges = 2000; // edges that are drawn at once

/** @typedef {{x: number, y: number, w: number, h: number}} View what is seen of a plane */

/** Whether two rectangles have something in common. @param {View} a @param {View} b */
const meet = (a, b) => a.x <= b.x + b.w && b.x <= a.x + a.w && a.y <= b.y + b.h && b.y <= a.y + a.h;

/** The rectangle around the points of an edge. @param {Edge} e @returns {View} */
function extent({ points }) {
  const [xs, ys] = [points.map((p) => p.x), points.map((p) => p.y)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, w: Math.max(...xs) - x, h: Math.max(...ys) - y };
}

/**
 * The boxes near a view, and the edges that may cross it; left: how many edges are too many.
 * @param {Layout} l @param {View[]} extents of its edges @param {View} view @param {string} keep a task that is always among them
 * @returns {{nodes: Node[], edges: Edge[], left: number}}
 */
export function near(l, extents, view, keep) {
  const wide = { x: view.x - around, y: view.y - around, w: view.w + 2 * around, h: view.h + 2 * around };
  const edges = l.edges.filter((_, i) => meet(extents[i], wide));
  return { nodes: l.nodes.filter((n) => n.task === keep || meet(n, wide)), edges: edges.slice(0, mostEdges), left: Math.max(0, edges.length - mostEdges) };
}

const mapTones = ['good', 'bad', 'late', 'off', 'idle', 'run'];
const mapSize = { w: 900, h: 140 }; // pixels at most

/** All boxes of a graph, small, and a frame around those in view. @param {{layout: Layout, view: View, tone: (n: Node) => string, move: (x: number, y: number) => void}} p */
function Overview({ layout, view, tone, move }) {
  const canvas = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const sx = Math.min(1, mapSize.w / layout.width);
  const sy = Math.min(1, mapSize.h / layout.height);
  useEffect(() => {
    const c = canvas.current;
    const g = c?.getContext('2d');
    if (!c || !g) return;
    /** @type {Record<string, string>} */
    const colours = {};
    for (const s of c.parentElement?.querySelectorAll('i') || []) colours[s.className] = getComputedStyle(s).color;
    g.clearRect(0, 0, c.width, c.height);
    for (const n of layout.nodes) {
      g.fillStyle = colours[tone(n)] || colours.idle;
      g.fillRect(n.x * sx, n.y * sy, Math.max(1.5, n.w * sx), Math.max(1.5, n.h * sy));
    }
    g.strokeStyle = colours.run;
    g.lineWidth = 2;
    g.strokeRect(view.x * sx + 1, view.y * sy + 1, Math.max(6, view.w * sx - 2), Math.max(6, view.h * sy - 2));
  });
  const click = (/** @type {any} */ e) => {
    const r = e.target.getBoundingClientRect();
    move(((e.clientX - r.left) / r.width) * layout.width, ((e.clientY - r.top) / r.height) * layout.height);
  };
  return html`
    <div class="map">
    <canvas ref=${canvas} width=${Math.ceil(layout.width * sx)} height=${Math.ceil(layout.height * sy)} role="img"
        aria-label=${`A map of ${count(layout.nodes.length, 'task')}; the graph below shows a part of it`} onClick=${click}></canvas>
    ${mapTones.map((t) => html`<i class=${t}></i>`)}</div>`;
}

/**
 * @typedef {{layout: Layout, selected?: string, asked?: string, href: (task: string) => string, status?: (task: string) => string|undefined,
 *   sub?: (task: string) => string, many?: (task: string) => boolean, bar?: (task: string) => any, name?: (task: string) => string, match?: (task: string) => boolean, called?: string}} Shown
 *   asked: the task of the address, which is brought into view; match: the filter
 */

const small = 6; // boxes of a graph in which there is nothing to fold

/** A graph in which groups of tasks are one box; their code is fetched if there may be one. @param {Shown} p */
export function Graph(p) {
  const [view, set] = useState(/** @type {((p: Shown) => any)|null} */ (null));
  const folds = p.layout.nodes.length >= small;
  useEffect(() => { if (folds) import('./foldedgraph.js').then((m) => set(() => m.FoldedGraph), () => set(() => Plane)); }, [folds]);
  return !folds ? h(Plane, p) : view ? h(view, p) : html`<p class="body muted" role="status">Loading …</p>`;
}

/** A graph with a box for each task. @param {Shown} p */
export function Plane({ layout, selected, asked, href, status, sub, many, bar, name = (task) => task, match: selects, called = 'Tasks as a graph' }) {
  const frame = useRef(/** @type {HTMLElement|null} */ (null));
  const wanted = useRef(''); // a task whose box gets the focus once it is there
  const [view, setView] = useState(/** @type {View} */ ({ x: 0, y: 0, w: 1200, h: 600 }));
  const [focused, setFocused] = useState('');
  const extents = useMemo(() => layout.edges.map(extent), [layout]);
  const large = layout.nodes.length > whole;
  const box = () => /** @type {HTMLElement} */ (frame.current);
  const move = (/** @type {number} */ x, /** @type {number} */ y) => box().scrollTo(x - box().clientWidth / 2, y - box().clientHeight / 2);
  const show = (/** @type {string|undefined} */ task) => {
    const n = layout.nodes.find((o) => o.task === task);
    if (n) move(n.x + n.w / 2, n.y + n.h / 2);
  };
  const see = () => setView({ x: box().scrollLeft, y: box().scrollTop, w: box().clientWidth, h: box().clientHeight });
  useEffect(() => {
    if (!large) return;
    const seen = new ResizeObserver(see);
    seen.observe(box());
    return () => seen.disconnect();
  }, [large]);
  useEffect(() => { if (large) show(asked || selected); }, [layout, asked]);
  const match = selects || (() => true);
  const found = !selects ? '' : selected && match(selected) ? selected : layout.nodes.find((n) => match(n.task))?.task || '';
  useEffect(() => { if (found) show(found); }, [found]);
  useEffect(() => {
    if (!wanted.current) return;
    const at = /** @type {HTMLElement|undefined} */ ([...box().querySelectorAll('.node')].find((n) => n.getAttribute('data-task') === wanted.current));
    if (!at) return;
    wanted.current = '';
    at.focus();
  });
  const { nodes, edges, left } = large ? near(layout, extents, view, focused) : { nodes: layout.nodes, edges: layout.edges, left: 0 };
  const drawn = (/** @type {string} */ cls, /** @type {Edge[]} */ some) => html`
    <path class=${`edge ${cls}`} d=${some.map((e) => path(e.points)).join('')} />`;
  const lit = edges.filter((e) => e.from === selected || e.to === selected);
  const taskAt = (/** @type {Event} */ e) => /** @type {HTMLElement} */ (e.target).closest('.node')?.getAttribute('data-task') || '';
  const keyed = (/** @type {KeyboardEvent} */ e) => {
    const from = taskAt(e);
    const to = from && along(layout, from, e.key);
    if (!to) return; // the arrow keys scroll
    e.preventDefault();
    wanted.current = to;
    if (nodes.some((n) => n.task === to)) setFocused(to);
    else show(to);
  };
  return html`
    ${large ? h(Overview, { layout, view, tone: ({ task: t, change }) => (change ? marks[change].tone : match(t) && status?.(t) ? look(/** @type {string} */ (status(t))).tone : 'idle'), move }) : null}
    <div class="graph" ref=${frame} tabindex="0" role="group" aria-label=${called} onKeyDown=${keyed}
        onFocusIn=${(/** @type {Event} */ e) => setFocused(taskAt(e))} onScroll=${large ? see : undefined}>
    <div class="plane" style=${{ width: `${layout.width + 8}px`, height: `${layout.height + 8}px` }}>
    <svg class="edges" width=${layout.width} height=${layout.height} aria-hidden="true">
    ${['', 'added', 'removed'].map((c) => drawn(c, edges.filter((e) => (e.change || '') === c)))}
    ${drawn('lit', lit)}</svg>
    ${nodes.map((n) => {
        const s = status?.(n.task);
        const faded = !match(n.task); // an empty box, whose words are there while it has the focus: arrow keys lead through it, Tab does not
        return html`
    <a key=${n.task} data-task=${n.task} class=${`node ${many?.(n.task) ? 'many' : ''} ${faded ? 'faded' : ''} ${n.change || ''}`}
        href=${href(n.task)} tabindex=${faded ? -1 : undefined} aria-current=${selected === n.task ? 'true' : undefined}
        style=${{ left: `${n.x}px`, top: `${n.y}px`, width: `${n.w}px`, height: `${n.h}px` }}>
    <span class="top-line">
    ${s ? html`<span class=${look(s).tone}>${statusShape(s)}</span>` : null}
    ${n.change ? html`<b class=${marks[n.change].tone} aria-hidden="true">${marks[n.change].mark}</b>` : null}
    <span class="user cut">${line(name(n.task), 80)}</span></span>
    <span class="sub user cut">
    ${s ? html`<span class="sr">${look(s).word}. </span>` : null}
    ${n.change ? `${n.change} · ` : ''}
    ${line(sub ? sub(n.task) : n.action, 80)}</span>
    ${bar?.(n.task)}</a>`;
      })}</div></div>
    ${left > 0 ? html`
    <p class="body muted small" role="status">
    ${count(left, 'edge')} of what is in view ${left === 1 ? 'is' : 'are'} not drawn: too many cross it.</p>` : null}`;
}

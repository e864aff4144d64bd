// A workflow as a graph, as the server lays it out: boxes are links, edges are drawn beneath them.
import { html } from '../vendor/preact.js';
import { line } from '../app/text.js';
import { statusShape, look } from './status.js';

/**
 * @typedef {{task: string, action?: string, layer?: number, x: number, y: number, w: number, h: number}} Node
 * @typedef {{from: string, to: string, points: {x: number, y: number}[]}} Edge
 * @typedef {{width: number, height: number, nodes: Node[], edges: Edge[]}} Layout
 */

const box = { w: 176, h: 52 };

/**
 * A layout in pixels: the server's units are abstract, so that a node becomes as large as its text needs.
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
export const countBar = (counts, total) => html`<span class="bar" aria-hidden="true">${Object.entries(counts || {}).filter(([s]) => !['requested', 'scheduled', 'pending'].includes(s))
  .map(([s, n]) => html`<i class=${look(s).tone} style=${{ width: `${(100 * n) / Math.max(1, total)}%` }}></i>`)}</span>`;

/**
 * Where an arrow key leads from a task: along an edge, to the nearest task at its end, or up and down within a layer; '' where there is none.
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

/**
 * @param {{layout: Layout, selected?: string, href: (task: string) => string, status?: (task: string) => string|undefined,
 *   sub?: (task: string) => string, many?: (task: string) => boolean, bar?: (task: string) => any}} p
 */
export function graph({ layout, selected, href, status, sub, many, bar }) {
  const lit = (/** @type {Edge} */ e) => e.from === selected || e.to === selected;
  const keyed = (/** @type {KeyboardEvent} */ e) => {
    const from = /** @type {HTMLElement} */ (e.target).closest('.node');
    const to = from && along(layout, from.getAttribute('data-task') || '', e.key);
    if (!to) return; // the arrow keys scroll
    e.preventDefault();
    /** @type {HTMLElement|undefined} */ ([.../** @type {HTMLElement} */ (e.currentTarget).querySelectorAll('.node')].find((n) => n.getAttribute('data-task') === to))?.focus();
  };
  return html`<div class="graph" tabindex="0" role="group" aria-label="Tasks as a graph" onKeyDown=${keyed}>
    <div class="plane" style=${{ width: `${layout.width + 8}px`, height: `${layout.height + 8}px` }}>
      <svg class="edges" width=${layout.width} height=${layout.height} aria-hidden="true">${layout.edges.map((e) => html`<path class=${lit(e) ? 'edge lit' : 'edge'} d=${path(e.points)} />`)}</svg>
      ${layout.nodes.map((n) => {
        const s = status?.(n.task);
        return html`<a key=${n.task} data-task=${n.task} class=${`node ${many?.(n.task) ? 'many' : ''}`} href=${href(n.task)} aria-current=${selected === n.task ? 'true' : undefined}
          style=${{ left: `${n.x}px`, top: `${n.y}px`, width: `${n.w}px`, height: `${n.h}px` }}>
          <span class="top-line">${s ? html`<span class=${look(s).tone}>${statusShape(s)}</span>` : null}<span class="user cut">${line(n.task, 80)}</span></span>
          <span class="sub user cut">${s ? html`<span class="sr">${look(s).word}. </span>` : null}${line(sub ? sub(n.task) : n.action, 80)}</span>${bar?.(n.task)}</a>`;
      })}
    </div></div>`;
}

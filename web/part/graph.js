// A workflow as a graph: boxes are links, edges are drawn beneath them. The server lays a registered definition out; where it has no
// layout to give, longest-path layers do.
import { html } from '../vendor/preact.js';
import { line } from '../app/text.js';
import { statusShape, look } from './status.js';

/**
 * @typedef {{task: string, action?: string, layer?: number, x: number, y: number, w: number, h: number}} Node
 * @typedef {{from: string, to: string, points: {x: number, y: number}[]}} Edge
 * @typedef {{width: number, height: number, nodes: Node[], edges: Edge[]}} Layout
 * @typedef {{name: string, needs?: string[], action: string}} Task
 */

const box = { w: 176, h: 52 };
const gap = { x: 32, y: 16 };

/**
 * Layers from left to right: a task stands one layer behind the last of what it needs, and near the middle of what it needs.
 * @param {Task[]} tasks
 * @returns {Layout}
 */
export function layers(tasks) {
  const byName = new Map(tasks.map((t) => [t.name, t]));
  /** @type {Map<string, number>} */
  const depth = new Map();
  const needs = (/** @type {Task} */ t) => (t.needs || []).filter((n) => byName.has(n));
  // Without recursion: a chain may have 10,000 tasks. Each round settles what needs only settled tasks.
  let open = tasks;
  while (open.length > 0) {
    const rest = [];
    for (const t of open) {
      if (needs(t).every((n) => depth.has(n))) depth.set(t.name, Math.max(-1, ...needs(t).map((n) => depth.get(n) || 0)) + 1);
      else rest.push(t);
    }
    if (rest.length === open.length) break; // a cycle, which no stored definition has
    open = rest;
  }
  /** @type {Task[][]} */
  const columns = [];
  for (const t of tasks) (columns[depth.get(t.name) || 0] ||= []).push(t);
  /** @type {Map<string, number>} */
  const place = new Map();
  const tallest = Math.max(0, ...columns.map((c) => c.length));
  /** @type {Node[]} */
  const nodes = [];
  columns.forEach((column, layer) => {
    const middle = (/** @type {Task} */ t) => {
      const at = needs(t).map((n) => place.get(n) || 0);
      return at.length > 0 ? at.reduce((a, b) => a + b, 0) / at.length : 0;
    };
    if (layer > 0) column.sort((a, b) => middle(a) - middle(b));
    const top = ((tallest - column.length) * (box.h + gap.y)) / 2;
    column.forEach((t, i) => {
      const y = top + i * (box.h + gap.y);
      place.set(t.name, y);
      nodes.push({ task: t.name, action: t.action, layer, x: layer * (box.w + gap.x), y, ...box });
    });
  });
  const at = new Map(nodes.map((n) => [n.task, n]));
  /** @type {Edge[]} */
  const edges = tasks.flatMap((t) => needs(t).map((from) => {
    const a = /** @type {Node} */ (at.get(from));
    const b = /** @type {Node} */ (at.get(t.name));
    return { from, to: t.name, points: [{ x: a.x + a.w, y: a.y + a.h / 2 }, { x: b.x, y: b.y + b.h / 2 }] };
  }));
  return { width: columns.length * (box.w + gap.x) - gap.x, height: tallest * (box.h + gap.y) - gap.y, nodes, edges };
}

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
export const countBar = (counts, total) => html`<span class="bar" aria-hidden="true">${Object.entries(counts || {}).filter(([s]) => !['requested', 'scheduling', 'scheduled', 'pending'].includes(s))
  .map(([s, n]) => html`<i class=${look(s).tone} style=${{ width: `${(100 * n) / Math.max(1, total)}%` }}></i>`)}</span>`;

/**
 * @param {{layout: Layout, selected?: string, href: (task: string) => string, status?: (task: string) => string|undefined,
 *   sub?: (task: string) => string, many?: (task: string) => boolean, bar?: (task: string) => any}} p
 */
export function graph({ layout, selected, href, status, sub, many, bar }) {
  const lit = (/** @type {Edge} */ e) => e.from === selected || e.to === selected;
  return html`<div class="graph" tabindex="0" role="group" aria-label="Tasks as a graph">
    <div class="plane" style=${{ width: `${layout.width + 8}px`, height: `${layout.height + 8}px` }}>
      <svg class="edges" width=${layout.width} height=${layout.height} aria-hidden="true">${layout.edges.map((e) => html`<path class=${lit(e) ? 'edge lit' : 'edge'} d=${path(e.points)} />`)}</svg>
      ${layout.nodes.map((n) => {
        const s = status?.(n.task);
        return html`<a key=${n.task} class=${`node ${many?.(n.task) ? 'many' : ''}`} href=${href(n.task)} aria-current=${selected === n.task ? 'true' : undefined}
          style=${{ left: `${n.x}px`, top: `${n.y}px`, width: `${n.w}px`, height: `${n.h}px` }}>
          <span class="top-line">${s ? html`<span class=${look(s).tone}>${statusShape(s)}</span>` : null}<span class="user cut">${line(n.task, 80)}</span></span>
          <span class="sub user cut">${s ? html`<span class="sr">${look(s).word}. </span>` : null}${line(sub ? sub(n.task) : n.action, 80)}</span>${bar?.(n.task)}</a>`;
      })}
    </div></div>`;
}

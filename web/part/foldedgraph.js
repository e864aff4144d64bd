// A large graph with each chain as one box, which leads to the task of it that tells most, and by that to the whole chain.
import { h, useMemo } from '../vendor/preact.js';
import { count, number } from '../app/text.js';
import { folded, telling } from './folding.js';
import { Plane } from './graph.js';

const ended = new Set(['completed', 'skipped', 'failed', 'timed_out', 'cancelled']);

/** @param {import('./graph.js').Shown} p */
export function FoldedGraph(p) {
  const { layout, asked, status } = p;
  const { layout: drawn, chains } = useMemo(() => folded(layout, asked), [layout, asked]);
  const of = (/** @type {string} */ task) => chains.get(task);
  const first = (/** @type {string} */ task) => { const c = of(task); return c ? telling(c, (t) => status?.(t)) : task; };
  const over = (/** @type {string[]} */ c) => c.filter((t) => ended.has(status?.(t) || '')).length;
  return h(Plane, {
    ...p, layout: drawn, selected: [...chains].find(([, c]) => c.includes(p.selected || ''))?.[0] ?? p.selected,
    href: (t) => p.href(first(t)), status: status && ((t) => status(first(t))), many: (t) => chains.has(t) || !!p.many?.(t), bar: (t) => (chains.has(t) ? null : p.bar?.(t)),
    name: (t) => { const c = of(t); return c ? `${t} … ${c[c.length - 1]}` : t; },
    sub: (t) => { const c = of(t); return c ? `${count(c.length, 'task')} in a row${status ? `, ${number(over(c))} ended` : ''}` : p.sub?.(t) || ''; },
  });
}

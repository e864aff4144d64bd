// A graph with each group of tasks as one box, which leads to its most informative task, and so to the whole group.
import { h, useMemo } from '../vendor/preact.js';
import { count, number } from '../app/text.js';
import { folded, telling } from './folding.js';
import { Plane, countBar } from './graph.js';

const ended = new Set(['completed', 'skipped', 'failed', 'timed_out', 'cancelled']);

/** @param {import('./graph.js').Shown} p */
export function FoldedGraph(p) {
  const { layout, asked, status, match } = p;
  const many = layout.nodes.filter((n) => p.many?.(n.task)).map((n) => n.task).join('\n');
  const { layout: drawn, groups } = useMemo(() => folded(layout, asked, p.many), [layout, asked, many]);
  const of = (/** @type {string} */ task) => groups.get(task);
  const first = (/** @type {string} */ task) => { const g = of(task); return g ? telling(match && g.tasks.some(match) ? g.tasks.filter(match) : g.tasks, (t) => status?.(t)) : task; };
  /** How many tasks of a group are in each status. @param {string[]} tasks */
  const counts = (tasks) => {
    /** @type {Record<string, number>} */
    const n = {};
    for (const t of tasks) n[status?.(t) || ''] = (n[status?.(t) || ''] || 0) + 1;
    return n;
  };
  const said = (/** @type {import('./folding.js').Group} */ g) => {
    const sum = (/** @type {(status: string) => boolean} */ is) => Object.entries(counts(g.tasks)).reduce((n, [s, k]) => n + (is(s) ? k : 0), 0);
    const bad = sum((s) => s === 'failed' || s === 'timed_out');
    const what = g.kind === 'chain' ? `${count(g.tasks.length, 'task')} in a row` : `${number(g.tasks.length)} × ${layout.nodes.find((n) => n.task === g.tasks[0])?.action || ''}`;
    return `${what}${!status ? '' : bad ? `, ${number(bad)} failed` : `, ${number(sum((s) => ended.has(s)))} ended`}`;
  };
  return h(Plane, {
    ...p, layout: drawn, selected: [...groups].find(([, g]) => g.tasks.includes(p.selected || ''))?.[0] ?? p.selected,
    href: (t) => p.href(first(t)), status: status && ((t) => status(first(t))), many: (t) => groups.has(t) || !!p.many?.(t), match: match && ((t) => of(t)?.tasks.some(match) ?? match(t)),
    bar: (t) => { const g = of(t); return !g ? p.bar?.(t) : status && g.kind === 'siblings' ? countBar(counts(g.tasks), g.tasks.length) : null; },
    name: (t) => { const g = of(t); return g ? `${g.tasks[0]} … ${g.tasks[g.tasks.length - 1]}` : t; },
    sub: (t) => { const g = of(t); return g ? said(g) : p.sub?.(t) || ''; },
  });
}

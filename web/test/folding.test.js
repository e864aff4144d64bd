import test from 'node:test';
import assert from 'node:assert/strict';
import { folded, telling } from '../part/folding.js';

/** A layout with a column of 10 for each layer: boxes are 4 wide. @param {Record<string, {at: [number, number], needs?: string[], action?: string}>} tasks @returns {import('../part/graph.js').Layout} */
function layout(tasks) {
  const nodes = Object.entries(tasks).map(([task, { at: [layer, row], action = 'noop' }]) => ({ task, action, x: 10 * layer, y: 10 * row, w: 4, h: 2 }));
  const box = (/** @type {string} */ task) => /** @type {(typeof nodes)[0]} */ (nodes.find((n) => n.task === task));
  const edges = Object.entries(tasks).flatMap(([to, t]) => (t.needs || []).map((from) => ({ from, to, points: [{ x: box(from).x + 4, y: box(from).y + 1 }, { x: box(to).x, y: box(to).y + 1 }] })));
  return { width: Math.max(...nodes.map((n) => n.x)) + 4, height: 100, nodes, edges };
}

const none = () => false;

const line = layout(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`t${i}`, { at: [i, 0], needs: i ? [`t${i - 1}`] : [] }])));

test('a line of 500 tasks is one box', () => {
  const { layout: l, groups } = folded(line);
  assert.deepEqual([l.nodes.map((n) => n.task), l.edges, l.width], [['t0'], [], 10]);
  assert.equal(groups.get('t0')?.tasks.length, 500);
});

test('the chain of the task that is chosen is drawn whole', () => {
  const { layout: l, groups } = folded(line, 't250');
  assert.deepEqual([l.nodes.length, l.edges.length, l.width, groups.size], [500, 499, line.width, 0]);
});

test('what a chain needs and what needs it stays, and columns that others have stay open', () => {
  const l = layout({ first: { at: [0, 0] }, a: { at: [1, 0], needs: ['first'] }, b: { at: [2, 0], needs: ['a'] }, c: { at: [3, 0], needs: ['b'] }, side: { at: [2, 1], needs: ['first'] }, last: { at: [4, 0], needs: ['c', 'side'] } });
  const f = folded(l, '', none, 0);
  assert.deepEqual([...f.groups], [['a', { kind: 'chain', tasks: ['a', 'b', 'c'] }]]);
  assert.deepEqual(f.layout.nodes.map((n) => [n.task, n.x]), [['first', 0], ['a', 10], ['side', 20], ['last', 30]]);
  assert.deepEqual(f.layout.edges.map((e) => [e.from, e.to]), [['first', 'a'], ['first', 'side'], ['a', 'last'], ['side', 'last']]);
  const out = f.layout.edges[2].points;
  assert.deepEqual([out[0], out.at(-1)], [{ x: 14, y: 1 }, { x: 30, y: 1 }]);
  for (const e of f.layout.edges) for (let i = 1; i < e.points.length; i++) assert.ok(e.points[i].x >= e.points[i - 1].x, 'edges lead forward');
});

test('what was changed is folded with what was changed in the same way alone', () => {
  const l = layout({ first: { at: [0, 0] }, ...Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`s${i}`, { at: /** @type {[number, number]} */ ([1, i]), needs: ['first'] }])) });
  assert.equal(folded(l).groups.size, 1);
  const one = { ...l, nodes: l.nodes.map((n) => (n.task === 's7' ? { ...n, change: /** @type {const} */ ('changed') } : n)) };
  assert.deepEqual([...folded(one).groups.values()].map((g) => g.tasks.length), [7]);
  const all = { ...l, nodes: l.nodes.map((n) => (n.task === 'first' ? n : { ...n, change: /** @type {const} */ ('added') })) };
  const f = folded(all);
  assert.deepEqual(f.layout.nodes.map((n) => n.change), [undefined, 'added']);
  const chain = { ...line, nodes: line.nodes.map((n, i) => (i === 100 ? { ...n, change: /** @type {const} */ ('removed') } : n)) };
  assert.deepEqual([...folded(chain).groups.values()].map((g) => g.tasks.length), [100, 399]);
});

test('two tasks, and tasks that others need, are no chain', () => {
  const l = layout({ a: { at: [0, 0] }, b: { at: [1, 0], needs: ['a'] }, c: { at: [2, 0], needs: ['b'] }, d: { at: [2, 1], needs: ['b'] } });
  assert.deepEqual([folded(l, '', none, 0).layout, folded(l, '', none, 0).groups.size], [l, 0]);
});

test('of a group the task is shown that tells most', () => {
  const of = (/** @type {Record<string, string>} */ s) => telling(['a', 'b', 'c'], (t) => s[t]);
  assert.equal(of({ a: 'completed', b: 'running', c: 'pending' }), 'b');
  assert.equal(of({ a: 'completed', b: 'running', c: 'failed' }), 'c');
  assert.equal(of({ a: 'completed', b: 'completed', c: 'pending' }), 'b');
  assert.equal(of({}), 'a');
});

/** A task, as many that need it, one that needs all of these, and one beside them. @param {number} n @param {(i: number) => {action?: string, needs?: string[]}} [of] */
const fan = (n, of = () => ({})) => layout({
  first: { at: [0, 0] }, side: { at: [1, n], needs: ['first'], action: 'sleep' }, last: { at: [2, 0], needs: [...Array.from({ length: n }, (_, i) => `s${i}`), 'side'] },
  ...Object.fromEntries(Array.from({ length: n }, (_, i) => [`s${i}`, { at: /** @type {[number, number]} */ ([1, i]), needs: ['first'], ...of(i) }])),
});

test('equal siblings are one box in the place of the one in their middle, and the rows of the others are closed', () => {
  const { layout: l, groups } = folded(fan(7));
  assert.deepEqual([...groups], [['s3', { kind: 'siblings', tasks: ['s0', 's1', 's2', 's3', 's4', 's5', 's6'] }]]);
  assert.deepEqual(l.nodes.map((n) => [n.task, n.x, n.y]), [['first', 0, 0], ['side', 10, 20], ['last', 20, 0], ['s3', 10, 10]]);
  assert.deepEqual(l.edges.map((e) => `${e.from} ${e.to}`).sort(), ['first s3', 'first side', 's3 last', 'side last']);
  assert.equal(l.height, 22);
  for (const e of l.edges) for (const [task, p] of /** @type {const} */ ([[e.from, e.points[0]], [e.to, e.points[e.points.length - 1]]])) {
    const n = l.nodes.find((o) => o.task === task);
    assert.equal(p.y, (n?.y || 0) + 1, `${e.from} ${e.to} ends at its boxes`);
  }
});

test('few siblings, those of another action or that need something else, and tasks with items are no group', () => {
  assert.equal(folded(fan(5)).groups.size, 0);
  assert.deepEqual([...folded(fan(8, (i) => ({ action: i < 2 ? 'code' : 'noop' }))).groups.values()].map((g) => g.tasks.length), [6]);
  assert.equal(folded(fan(8, (i) => ({ needs: i < 3 ? ['first', 'side'] : ['first'] }))).groups.size, 0);
  assert.equal(folded(fan(8), '', (t) => t !== 's0').groups.size, 0);
});

test('the siblings of the task that is chosen are drawn whole', () => {
  assert.deepEqual(folded(fan(7), 's5').layout, fan(7));
});

test('a group between groups has one edge to each', () => {
  const rows = Array.from({ length: 6 }, (_, i) => i);
  const l = layout({ ...Object.fromEntries(rows.map((i) => [`a${i}`, { at: /** @type {[number, number]} */ ([0, i]) }])), ...Object.fromEntries(rows.map((i) => [`b${i}`, { at: /** @type {[number, number]} */ ([1, i]), needs: rows.map((n) => `a${n}`) }])) });
  const f = folded(l);
  assert.deepEqual([f.layout.nodes.length, f.layout.edges.length, [...f.groups.keys()]], [2, 1, ['a2', 'b2']]);
});

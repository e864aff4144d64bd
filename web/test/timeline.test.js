import test from 'node:test';
import assert from 'node:assert/strict';
import { timeline, ticks } from '../part/timeline.js';

const at = (s) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
const e = (id, index, created, claimed, finished, status = 'completed') => ({ id, index, status, attempt: 1, created_at: at(created), claimed_at: claimed === null ? undefined : at(claimed), finished_at: finished === null ? undefined : at(finished) });

test('executions that follow each other share a lane, those side by side do not', () => {
  const tasks = [{ name: 'each', action: 'noop', foreach: true, status: 'completed', executions: [e('a', 0, 0, 1, 2), e('b', 1, 0, 2, 4), e('c', 2, 0, 1, 3)] }];
  const { rows, length } = timeline(tasks, Date.parse(at(9)));
  assert.equal(length, 4000);
  assert.deepEqual(rows[0].lanes.map((l) => l.map((b) => b.id)), [['a', 'b'], ['c']]);
});

test('bars too short to hit stand apart', () => {
  const tasks = [{ name: 'each', action: 'noop', foreach: true, status: 'completed', executions: [e('a', 0, 0, 0, 0), e('b', 1, 1, 1, 1), e('c', 2, 20, 20, 100), e('d', 3, 2, 2, 2)] }];
  const { rows } = timeline(tasks, 0);
  assert.deepEqual(rows[0].lanes.map((l) => l.map((b) => b.id)), [['a', 'c'], ['b'], ['d']]);
});

test('what begins at the end of a lane does not lie upon what came before it', () => {
  const tasks = [{ name: 'each', action: 'noop', foreach: true, status: 'completed', executions: [e('a', 0, 0, 0, 85), e('b', 1, 0, 87, 88), e('c', 2, 0, 98, 100), e('d', 3, 0, 91, 96)] }];
  const { rows } = timeline(tasks, 0);
  assert.deepEqual(rows[0].lanes.map((l) => l.map((b) => b.id)), [['a', 'b'], ['d'], ['c']]);
});

test('what has not ended lasts until now, what has not begun has no bar', () => {
  const tasks = [
    { name: 'later', action: 'noop', status: 'pending' },
    { name: 'second', action: 'noop', status: 'running', executions: [e('b', 0, 3, 4, null, 'running')] },
    { name: 'first', action: 'noop', status: 'completed', executions: [e('a', 0, 0, null, 1, 'cancelled')] },
  ];
  const { rows, length } = timeline(tasks, Date.parse(at(10)));
  assert.deepEqual(rows.map((r) => r.task), ['first', 'second']);
  assert.equal(length, 10000);
  assert.ok(Number.isNaN(rows[0].lanes[0][0].run));
});

test('lanes are bounded, and what is left out is counted', () => {
  const executions = Array.from({ length: 100 }, (_, i) => e(`x${i}`, i, 0, 0, 10));
  const { rows } = timeline([{ name: 'wide', action: 'noop', foreach: true, status: 'completed', executions }], 0);
  assert.equal(rows[0].lanes.length, 24);
  assert.equal(rows[0].hidden, 76);
});

test('rounds have one lane and their numbers', () => {
  const { rows } = timeline([{ name: 'poll', action: 'noop', repeat: 5, status: 'running', executions: [e('a', 0, 0, 0, 1), e('b', 1, 1, 6, 7), e('c', 2, 7, null, null, 'requested')] }], Date.parse(at(9)));
  assert.deepEqual(rows[0].lanes.map((l) => l.map((b) => b.name)), [['poll, round 1', 'poll, round 2', 'poll, round 3']]);
  assert.equal(rows[0].many, true);
});

test('nothing has begun', () => {
  assert.deepEqual(timeline([{ name: 'a', action: 'noop', status: 'pending' }], 0).rows, []);
});

test('ticks are few and round', () => {
  for (const length of [1, 7, 999, 61000, 3.6e6, 4e8, 9e10]) {
    const all = ticks(length);
    assert.ok(all.length >= 1 && all.length <= 7, `${length}: ${all}`);
  }
});

test('a filter leaves rows and bars where they are, and of items those with the status', () => {
  const tasks = [
    { name: 'first', action: 'noop', status: 'completed', executions: [e('a', 0, 0, 0, 50)] },
    { name: 'each', action: 'noop', foreach: true, status: 'failed', executions: [e('b', 0, 50, 50, 100, 'failed'), e('c', 1, 50, 50, 100)] },
    { name: 'after', action: 'noop', foreach: true, status: 'failed', executions: [e('d', 0, 100, 100, 200)] },
  ];
  const { rows, length } = timeline(tasks, 0, (t) => t.status === 'failed', ['failed']);
  assert.deepEqual(rows.map((r) => [r.task, ...r.lanes.flat().map((b) => `${b.id} ${b.from}`)]), [['each', 'b 50000'], ['after', 'd 100000']]);
  assert.equal(length, 200000);
});

test('of many executions some are drawn, of the whole time, and the others are counted', () => {
  const since = '2026-01-01T00:00:00.000Z';
  const items = Array.from({ length: 10000 }, (_, index) => ({ index, id: `x${index}`, status: 'completed', attempt: 1, created_ms: 0, claimed_ms: index * 2, started_ms: index * 2, finished_ms: index * 2 + 30 }));
  const task = { name: 'each', action: 'noop', foreach: true, status: 'completed', created: 10000, more: true, executions: [e('x9999', 9999, 0, 19, 20)] };
  const { rows, length } = timeline([task], 0, undefined, [], new Map([['each', { since, items }]]));
  assert.equal(length, 20028);
  const bars = rows[0].lanes.flat();
  assert.equal(rows[0].of, 10000);
  assert.equal(rows[0].hidden, 10000 - bars.length);
  assert.ok(bars.length >= 110, `${bars.length} bars`);
  for (let tenth = 0; tenth < 10; tenth++) assert.ok(bars.some((b) => Math.floor((10 * b.run) / length) === tenth), `nothing is drawn of tenth ${tenth}`);
});

test('without the list of all, what is not listed is counted', () => {
  const { rows } = timeline([{ name: 'each', action: 'noop', foreach: true, status: 'completed', created: 10000, more: true, executions: [e('x9999', 9999, 0, 19, 20)] }], 0);
  assert.deepEqual([rows[0].of, rows[0].hidden], [10000, 9999]);
});

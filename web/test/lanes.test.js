import test from 'node:test';
import assert from 'node:assert/strict';
import { attemptsAt, byWorker, spanOf } from '../part/lanes.js';

const at = (s) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
const a = (execution, worker, created, claimed, finished, o = {}) => ({ execution, kind: 'noop', attempt: 1, status: 'completed', task: 'each', worker, created_at: at(created),
  claimed_at: claimed === null ? undefined : at(claimed), finished_at: finished === null ? undefined : at(finished), ...o });
const ids = (row) => row.lanes.map((l) => l.map((b) => b.all.map((x) => x.execution).join('+')));

test('each worker has a row, and a lane for each slot that was in use at once', () => {
  const { rows, length, idle } = byWorker([a('a', 'box-2', 0, 1, 40), a('b', 'box-1', 0, 1, 40), a('c', 'box-1', 0, 20, 60), a('d', 'box-1', 0, 40, 100), a('s', 'engine', 0, 0, 100), a('w', undefined, 0, null, null, { status: 'scheduled' })], Date.parse(at(100)));
  assert.deepEqual(rows.map((r) => r.worker), ['box-1', 'box-2', 'engine']);
  assert.deepEqual(ids(rows[0]), [['b', 'd'], ['c']]);
  assert.equal(rows[0].attempts, 3);
  assert.equal(length, 100000);
  assert.equal(idle, 1);
});

test('the attempts of one execution are with the workers that had them', () => {
  const { rows } = byWorker([a('a', 'box-1', 0, 0, 30, { lost: true, status: 'running' }), a('a', 'box-2', 30, 40, 100, { attempt: 2 })], 0);
  assert.deepEqual(rows.map((r) => [r.worker, r.lanes[0][0].lost, r.lanes[0][0].all[0].attempt]), [['box-1', true, 1], ['box-2', false, 2]]);
});

test('attempts too short to be told apart are one bar, with the gravest status', () => {
  const { rows } = byWorker([a('a', 'w', 0, 0, 1), a('b', 'w', 0, 1, 2, { status: 'failed' }), a('c', 'w', 0, 2, 3), a('d', 'w', 0, 50, 100)], 0);
  assert.deepEqual(ids(rows[0]), [['a+b+c', 'd']]);
  assert.equal(rows[0].lanes[0][0].status, 'failed');
  assert.equal(rows[0].lanes[0][0].to, 3000);
});

test('a long one behind short ones is a bar of its own, and none lies upon another', () => {
  const { rows } = byWorker([a('a', 'w', 0, 0, 1), a('b', 'w', 0, 1, 2), a('c', 'w', 0, 2, 95), a('d', 'w', 0, 96, 100)], 0);
  assert.deepEqual(ids(rows[0]), [['a+b', 'c', 'd']]);
  const bars = rows[0].lanes[0];
  assert.deepEqual(bars.map((b) => [b.at, b.end]), [[0, 10000], [10000, 90000], [90000, 100000]]);
});

test('bars never lie upon one another, and each is wide enough to be hit', () => {
  let seed = 7;
  const random = (/** @type {number} */ n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 200; round++) {
    const all = Array.from({ length: 1 + random(40) }, (_, i) => { const from = random(100); return a(`x${i}`, `w${random(3)}`, 0, from, from + random(round % 2 ? 4 : 60)); });
    const { rows, span } = byWorker(all, 0);
    const least = 0.1 * (span.to - span.from);
    for (const lane of rows.flatMap((r) => r.lanes)) {
      lane.forEach((b, i) => {
        assert.ok(b.at >= span.from && b.end <= span.to + 1e-6 && b.end - b.at >= least - 1e-6, JSON.stringify([b.at, b.end, span]));
        assert.ok(i === 0 || b.at >= lane[i - 1].end - 1e-6, 'one lies upon another');
      });
    }
    assert.equal(rows.flatMap((r) => r.lanes.flat()).reduce((n, b) => n + b.all.length, 0), all.length);
  }
});

test('a span shows them apart', () => {
  const all = [a('a', 'w', 0, 0, 1), a('b', 'w', 0, 1, 2), a('c', 'w', 0, 2, 3), a('d', 'w', 0, 50, 100)];
  const { rows, span, within } = byWorker(all, 0, { from: 0, to: 3000 });
  assert.deepEqual(ids(rows[0]), [['a', 'b', 'c']]);
  assert.deepEqual(within.map((o) => o.execution), ['a', 'b', 'c']);
  assert.deepEqual(span, { from: 0, to: 3000 });
});

test('what begins at the end of the lane does not lie upon what came before it', () => {
  const { rows } = byWorker([a('a', 'w', 0, 0, 90), a('b', 'w', 0, 93, 98), a('c', 'w', 0, 99, 100)], 0);
  assert.deepEqual(ids(rows[0]), [['a', 'b+c']]);
});

test('an attempt that goes on lasts until now, and a bar is drawn for 10,000 in bounds', () => {
  assert.equal(byWorker([a('a', 'w', 0, 0, null, { status: 'running' })], Date.parse(at(7))).length, 7000);
  const many = byWorker(Array.from({ length: 10000 }, (_, i) => a(`x${i}`, `w${i % 100}`, 0, Math.floor(i / 100), Math.floor(i / 100) + 1)), 0);
  assert.equal(many.rows.length, 100);
  const bars = many.rows.flatMap((r) => r.lanes.flat());
  assert.ok(bars.length <= 600, `${bars.length} bars`);
  assert.equal(bars.reduce((n, b) => n + b.all.length, 0) + many.rows.reduce((n, r) => n + r.hidden, 0), 10000);
});

test('at a moment of the past', () => {
  const then = Date.parse(at(5));
  const past = attemptsAt([a('a', 'w', 0, 1, 4), a('b', 'w', 0, 4, 9, { started_at: at(5), status: 'failed', code: 'oom' }), a('c', 'w', 0, 6, 9), a('d', 'w', 6, 7, 8)], then);
  assert.deepEqual(past.map((x) => [x.execution, x.status, !!x.claimed_at, !!x.finished_at, x.code]), [['a', 'completed', true, true, undefined], ['b', 'running', true, false, undefined], ['c', 'scheduled', false, false, undefined]]);
});

test('a span in the address', () => {
  assert.deepEqual(spanOf('1200-3400'), { from: 1200, to: 3400 });
  for (const bad of [null, '', '3-3', '9-3', '-1-3', 'a-b', '1-2-3']) assert.equal(spanOf(bad), null, String(bad));
});

test('a filter leaves attempts in their lanes, and hides workers that had none of them', () => {
  const all = [a('a', 'w', 0, 0, 50), a('b', 'w', 0, 0, 50, { task: 'other' }), a('c', 'w', 0, 50, 100), a('d', 'v', 0, 0, 100)];
  const { rows, length } = byWorker([...all, a('e', 'w', 0, 60, 70, { task: 'other' })], 0, null, (x) => x.task === 'other');
  assert.deepEqual(rows.map((r) => [r.worker, r.attempts, ...ids(r)]), [['w', 2, ['b', 'e']]]);
  assert.equal(length, 100000);
});

test('what ran within one millisecond is one bar of the shortest span, and named', () => {
  const all = [a('a', 'w', 0, 0, 0), a('b', 'w', 0, 0, 0), a('c', 'w', 0, 0, 0), a('d', 'w', 0, 50, 100)];
  const { rows, within } = byWorker(all, 0, { from: 0, to: 1 });
  assert.deepEqual(ids(rows[0]), [['a+b+c']]);
  assert.deepEqual(within.map((o) => o.execution), ['a', 'b', 'c']);
});

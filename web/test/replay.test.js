import test from 'node:test';
import assert from 'node:assert/strict';
import { momentAt, taskAt } from '../part/replay.js';

const at = (/** @type {number} */ s) => `2026-11-02T10:00:0${s}Z`;
/** @type {any[]} */
const events = [
  ['requested'], ['running'], ['advanced', { started: { list: 1 } }], ['advanced', { started: { each: 2 }, expanded: { each: 3 }, skipped: ['no'] }],
  ['advanced', { started: { each: 1 } }], ['failed'],
].map(([type, data], i) => ({ seq: i + 1, attempt: 1, type, at: at(i), data }));
const each = /** @type {any} */ ({ name: 'each', action: 'code', foreach: true, status: 'failed', total: 3, executions: [
  { id: 'a', index: 0, status: 'completed', attempt: 1, created_at: at(3), claimed_at: at(3), started_at: at(3), finished_at: at(4) },
  { id: 'b', index: 1, status: 'failed', attempt: 1, created_at: at(3), claimed_at: at(4), started_at: at(4), finished_at: at(5) },
  { id: 'c', index: 2, status: 'completed', attempt: 1, created_at: at(4), claimed_at: at(4), started_at: at(4), finished_at: at(5) },
] });

test('the history says how far it was', () => {
  assert.equal(momentAt([], 1), null);
  const m = momentAt(events, 4);
  assert.deepEqual([m?.status, m?.since, m?.last, [...m?.skipped || []], m?.expanded.get('each')], ['running', 3000, 6, ['no'], 3]);
  assert.equal(momentAt(events, 99)?.status, 'failed');
  assert.equal(momentAt(events, -3)?.seq, 1);
});

test('a task as it was', () => {
  const then = (/** @type {number} */ seq, task = each) => taskAt(task, /** @type {any} */ (momentAt(events, seq)));
  assert.equal(then(3).status, 'pending');
  assert.equal(then(3, { ...each, executions: each.executions.map((/** @type {any} */ e) => ({ ...e, created_at: at(0) })) }).status, 'pending');
  assert.deepEqual([then(4).status, then(4).created, then(4).total, then(4).counts], ['running', 2, 3, { running: 1, scheduled: 1 }]);
  assert.deepEqual([then(5).status, then(5).ended, then(5).counts], ['running', 1, { completed: 1, running: 2 }]);
  assert.deepEqual([then(6).status, then(6).finished_at], ['failed', at(5)]);
  assert.equal(then(4, { name: 'no', action: 'noop' }).status, 'skipped');
  assert.equal(then(4, { name: 'later', action: 'noop' }).status, 'pending');
});

test('a new attempt starts its tasks anew', () => {
  const again = [...events.slice(0, 4), { seq: 5, attempt: 2, type: 'requested', at: at(6) }];
  const m = momentAt(again, 5);
  assert.deepEqual([m?.attempt, m?.status, m?.started.size, m?.skipped.size], [2, 'requested', 0, 0]);
});

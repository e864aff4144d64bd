import test from 'node:test';
import assert from 'node:assert/strict';

Object.assign(globalThis, { document: { baseURI: 'http://pawl.example/ui/', querySelector: () => null, addEventListener: () => {} } });
const { ownersOf } = await import('../part/owners.js');

const at = (/** @type {number} */ s) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
/** @param {[number, number, string, any?][]} all second, attempt, type, data */
const events = (all) => all.map(([s, attempt, type, data], i) => ({ seq: i + 1, attempt, type, at: at(s), data }));
const brief = (/** @type {any[]} */ all) => owners(all).map((o) => [o.worker || '-', o.attempt, o.to - o.at, o.status, o.end, o.lost]);
const owners = (/** @type {any[]} */ all) => ownersOf(events(all)).owners;

test('an execution whose worker was lost belongs to the server until another has it', () => {
  assert.deepEqual(brief([[0, 1, 'requested'], [1, 1, 'scheduled'], [2, 1, 'provisioning', { worker: 'a' }], [3, 1, 'running'], [9, 1, 'lost', { reason: 'its lease ran out' }], [9, 2, 'requested'], [10, 2, 'scheduled'],
    [12, 2, 'provisioning', { worker: 'b' }], [12, 2, 'running'], [20, 2, 'failed', { code: 'nonzero_exit' }]]),
  [['-', 1, 2000, 'scheduled', '', false], ['a', 1, 7000, 'failed', 'its lease ran out', true], ['-', 2, 3000, 'scheduled', '', false], ['b', 2, 8000, 'failed', 'nonzero_exit', false]]);
});

test('what the engine runs itself has no other owner, and what runs has one until now', () => {
  assert.deepEqual(brief([[0, 1, 'requested'], [1, 1, 'provisioning', { worker: 'engine' }], [1, 1, 'running'], [2, 1, 'completed']]), [['-', 1, 2000, 'completed', '', false]]);
  assert.deepEqual(brief([[0, 1, 'requested'], [1, 1, 'provisioning', { worker: 'a' }]])[1], ['a', 1, NaN, 'provisioning', '', false]);
});

test('an ordered end has the moment of the order and that of its confirmation', () => {
  const { ordered, confirmed } = ownersOf(events([[0, 1, 'requested'], [1, 1, 'provisioning', { worker: 'a' }], [1, 1, 'running'], [5, 1, 'cancelled', { code: 'cancelled', ordered_at: at(4) }]]));
  assert.deepEqual([ordered, confirmed].map((n) => n % 60000), [4000, 5000]);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { looked, nothing, older } from '../part/rows.js';

const x = (/** @type {string} */ id, status = 'running', attempt = 1) => /** @type {import('../types').Execution} */ (/** @type {unknown} */ ({ id, status, attempt }));
const page = (/** @type {any[]} */ rows, address = 'a', cursor = 'c1') => ({ address, rows, cursor, searched: '' });
const none = { asked: [], found: [] };
const first = looked(nothing, page([x('3'), x('2'), x('1')]), none, true, 50);
const ids = (/** @type {import('../part/rows.js').State} */ s) => s.rows.map((r) => r.id).join('');

test('rows move forward only, and none moves while the pointer is among them', () => {
  const s = looked(first, page([x('4'), x('3', 'completed'), x('2', 'scheduled')]), none, false, 50);
  assert.deepEqual([ids(s), s.newer.map((r) => r.id), s.rows[0].status, s.rows[1].status], ['321', ['4'], 'completed', 'running']);
  assert.equal(ids(looked(s, page([x('4'), x('3', 'completed')]), none, true, 50)), '4321');
});

test('what came while a look was under way stays', () => {
  const more = older(first, page([x('0')], 'a', 'c2'), 'c1');
  assert.deepEqual([ids(more), more.cursor], ['3210', 'c2']);
  const s = looked(more, page([x('3'), x('2')]), none, true, 50);
  assert.deepEqual([ids(s), s.cursor], ['3210', 'c2']);
});

test('an answer about other filters, or one that came before, changes nothing', () => {
  assert.equal(older(first, page([x('0')], 'b', 'c2'), 'c1'), first);
  const twice = older(older(first, page([x('0')], 'a', 'c2'), 'c1'), page([x('0')], 'a', 'c2'), 'c1');
  assert.deepEqual([ids(twice), twice.cursor], ['3210', 'c2']);
  assert.equal(ids(looked(first, page([x('9')], 'b'), none, false, 50)), '9');
});

test('a row that the server has no longer is shown no longer', () => {
  const s = looked(first, page([x('3')]), { asked: [x('2'), x('1')], found: [x('1', 'failed')] }, false, 50);
  assert.deepEqual([ids(s), s.rows[1].status], ['31', 'failed']);
});

test('after a whole page of new rows the list starts anew', () => {
  assert.equal(ids(looked(first, page([x('9'), x('8')]), none, true, 2)), '98');
  const waits = looked(first, page([x('9'), x('8')]), none, false, 2);
  assert.deepEqual([ids(waits), waits.newer.length], ['321', 2]);
});

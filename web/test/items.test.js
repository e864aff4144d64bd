import test from 'node:test';
import assert from 'node:assert/strict';
import { byLength, nextIll, places, stepTo } from '../part/items.js';

test('the longest are first, what runs counts until now, and what has not begun is last', () => {
  const item = (/** @type {number} */ index, /** @type {number|undefined} */ started_ms, /** @type {number|undefined} */ finished_ms) => ({ index, id: `ex_${index}`, status: '', attempt: 1, created_ms: 0, started_ms, finished_ms });
  assert.deepEqual(byLength([item(0, undefined, undefined), item(1, 5, 5), item(2, 10, undefined), item(3, 0, 60), item(4, 1, 1)], 100).map((i) => i.index), [2, 3, 1, 4, 0]);
});

test('keys lead through a grid and never out of it', () => {
  const to = (/** @type {string} */ key, /** @type {number} */ from) => stepTo(key, from, 4, 10); // 0 1 2 3 / 4 5 6 7 / 8 9
  assert.deepEqual(['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'Home', 'End', 'PageDown', 'x', 'toString'].map((k) => to(k, 5)), [6, 4, 9, 1, 0, 9, 9, -1, -1]);
  assert.deepEqual([to('ArrowLeft', 0), to('ArrowUp', 2), to('ArrowRight', 9), to('ArrowDown', 6), to('PageUp', 9)], [0, 2, 9, 6, 0]);
});

test('the next that did not complete is found behind a cell, and before it at the end', () => {
  const item = (/** @type {number} */ index, /** @type {string} */ status) => ({ index, id: `ex_${index}`, status, attempt: 1, created_ms: 0 });
  const at = places([item(0, 'completed'), item(1, 'failed'), item(3, 'running'), item(4, 'timed_out')]);
  assert.equal(at[2], undefined);
  assert.deepEqual([0, 1, 3, 4].map((n) => nextIll(at, n)), [1, 4, 4, 1]);
  assert.equal(nextIll(places([item(0, 'completed')]), 0), -1);
});

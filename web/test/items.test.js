import test from 'node:test';
import assert from 'node:assert/strict';
import { byLength } from '../part/items.js';

test('the longest are first, what runs counts until now, and what has not begun is last', () => {
  const item = (/** @type {number} */ index, /** @type {number|undefined} */ started_ms, /** @type {number|undefined} */ finished_ms) => ({ index, id: `ex_${index}`, status: '', attempt: 1, created_ms: 0, started_ms, finished_ms });
  assert.deepEqual(byLength([item(0, undefined, undefined), item(1, 5, 5), item(2, 10, undefined), item(3, 0, 60), item(4, 1, 1)], 100).map((i) => i.index), [2, 3, 1, 4, 0]);
});

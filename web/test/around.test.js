import test from 'node:test';
import assert from 'node:assert/strict';
import { around } from '../part/around.js';

test('a fault is shown at its place', () => {
  assert.deepEqual(around('status = faild and x', { line: 1, column: 10 }), { before: 'status = ', at: 'faild', after: ' and x' });
  assert.deepEqual(around('a = \u{1F600}\u{1F600} b', { column: 8 }), { before: 'a = \u{1F600}\u{1F600} ', at: 'b', after: '' });
  assert.deepEqual(around('status =', { line: 1, column: 9 }), { before: 'status =', at: ' ', after: '' });
  assert.deepEqual(around('a\nb == c', { line: 2, column: 3 }), { before: 'b ', at: '==', after: ' c' });
  assert.deepEqual(around('x', { line: 9, column: 99 }), { before: 'x', at: ' ', after: '' });
});

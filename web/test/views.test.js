import test from 'node:test';
import assert from 'node:assert/strict';
import { ordered, viewsOf, withView } from '../part/views.js';

test('views are what was kept, and nothing else', () => {
  assert.deepEqual(viewsOf(null), []);
  assert.deepEqual(viewsOf('{"a": 1}'), []);
  assert.deepEqual(viewsOf('not json'), []);
  assert.deepEqual(viewsOf('[{"name": "a", "query": "status=failed"}, {"name": 3, "query": ""}, null, {"name": "", "query": "x"}]'), [{ name: 'a', query: 'status=failed' }]);
});

test('the same filters are the same view, and a name is one view', () => {
  assert.equal(ordered('b=2&a=1&b=1'), ordered(new URLSearchParams('a=1&b=2&b=1')));
  assert.deepEqual(withView([{ name: 'a', query: 'x=1' }, { name: 'b', query: 'x=2' }], { name: 'a', query: 'x=3' }), [{ name: 'b', query: 'x=2' }, { name: 'a', query: 'x=3' }]);
});

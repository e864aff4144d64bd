import test from 'node:test';
import assert from 'node:assert/strict';

Object.assign(globalThis, {
  location: new URL('http://pawl.example/ui/'), addEventListener: () => {},
  document: { baseURI: 'http://pawl.example/ui/', querySelector: () => null, addEventListener: () => {} },
});
const { matches } = await import('../part/taskfilter.js');

test('a task is found by any of the statuses and by a part of its name', () => {
  const t = { name: 'Fetch-12', status: 'failed' };
  assert.deepEqual([matches(t, [], ''), matches(t, ['running', 'failed'], ''), matches(t, ['running'], ''), matches(t, [], 'fetch'), matches(t, ['failed'], 'store'), matches({ name: 'a' }, ['failed'], '')],
    [true, true, false, true, false, false]);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { settings, settingsOf } from '../screen/settings.js';

test('texts are settings in the words of the API', () => {
  assert.deepEqual(settings({ queue: ' gpu ', worker_labels: 'gpu=a100, disk=fast', priority: '-3', timeout: '10m', key: 'db', limit: '2', rest: '{"no_cache": true}', total_timeout: ' ' }).fields,
    { no_cache: true, queue: 'gpu', timeout: '10m', worker_labels: { __proto__: null, gpu: 'a100', disk: 'fast' }, priority: -3, concurrency: { key: 'db', limit: 2 } });
  assert.deepEqual(settings({ key: 'db' }).fields, { concurrency: { key: 'db', limit: 1 } });
  assert.deepEqual(settings({ rest: '{"concurrency": {"key": "a", "limit": 1, "fair_by": "ann"}}' }).fields, { concurrency: { key: 'a', limit: 1, fair_by: 'ann' } });
});

test('texts that say nothing have a reason', () => {
  for (const [texts, why] of /** @type {[Record<string, string>, RegExp][]} */ ([[{ priority: 'high' }, /priority is a whole number, and not high/], [{ key: 'a', limit: '1.5' }, /at once is a whole number/], [{ rest: '[1]' }, /an object of JSON/], [{ rest: '{' }, /an object of JSON/], [{ worker_labels: 'gpu' }, /is not a label/]])) {
    const s = settings(texts);
    assert.match(s.wrong, why);
    assert.deepEqual([s.fields, s.texts], [{}, texts]);
  }
});

test('an execution gives what it was submitted with', () => {
  const x = /** @type {any} */ ({ queue: 'gpu', priority: 2, timeout: '1m30s', worker_labels: { gpu: 'a100' }, key: 'db', key_limit: 2, retry: { max_attempts: 3 } });
  assert.deepEqual(settingsOf(x, null).texts, { queue: 'gpu', priority: '2', timeout: '1m30s', worker_labels: 'gpu=a100', key: 'db', limit: '2', rest: '{"retry":{"max_attempts":3}}' });
  assert.deepEqual(settingsOf({ ...x, queue: 'default', priority: undefined, timeout: undefined, worker_labels: undefined, retry: undefined, fair_by: 'ann', weight: 2 }, null).texts, { rest: '{"concurrency":{"key":"db","limit":2,"fair_by":"ann","weight":2}}' });
});

test('what follows from the document of the action is left to it', () => {
  const x = /** @type {any} */ ({ queue: 'gpu', priority: 2, timeout: '2m0s', queue_timeout: '1h30m0s', worker_labels: { gpu: 'a100', disk: 'fast' }, key: 'deploy/prod', key_limit: 1, retry: { max_attempts: 3 } });
  const doc = { queue: 'gpu', priority: '${{ input.p }}', timeout: '1m', queue_timeout: '90m', worker_labels: { gpu: 'a100' }, concurrency: { key: 'deploy/${{ input.env }}', limit: 1 }, retry: { max_attempts: 3 } };
  assert.deepEqual(settingsOf(x, doc).texts, { timeout: '2m0s', worker_labels: 'disk=fast' });
});

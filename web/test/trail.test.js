import test from 'node:test';
import assert from 'node:assert/strict';
import { doing, nameOf, trailSentence } from '../part/trail.js';

const why = (id, o) => ({ id, action: 'deploy', status: 'requested', waiting: 'key', summary: '', ...o });

test('one step is a sentence of its own', () => {
  assert.equal(trailSentence([why('ex_1', { waiting: 'queue', queue: 'gpu' })], false), 'deploy waits for a free slot of queue gpu.');
});

test('holders and tasks lead on, and a loop is said', () => {
  const first = why('ex_1', { key: 'prod' });
  const second = why('ex_2', { waiting: 'children', root: 'ex_3' });
  const third = why('ex_3', { task: 'each', index: 4, waiting: 'worker', worker: 'box-3' });
  assert.equal(trailSentence([first, second, third], false), 'deploy waits for key prod, which deploy holds; that waits for its tasks, of which each[4] runs on worker box-3.');
  assert.equal(trailSentence([first, why('ex_2', { key: 'db' })], true), 'deploy waits for key prod, which deploy holds; that waits for key db, and that leads back to where it began.');
});

test('every wait has words of its own', () => {
  const words = ['key', 'queue', 'worker', 'children', 'sleep', 'time', 'retry', 'answer', 'signal', 'paused', 'cancel', 'nothing', 'rate', 'aside'].map((waiting) => doing(why('ex_1', { waiting, key: 'k', queue: 'q' })));
  assert.equal(new Set(words).size, words.length, words.join('\n'));
  assert.ok(!words.some((w) => /undefined|NaN|Invalid/.test(w)), words.join('\n'));
});

test('an item has its number, the first one its name alone, and hostile names are made visible', () => {
  assert.equal(nameOf(why('ex_1', { task: 'each', index: 2 })), 'each[2]');
  assert.equal(nameOf(why('ex_1', { task: 'each', index: 0 })), 'each');
  assert.equal(nameOf(why('ex_1', { action: 'a\u202eb' })), 'a⟨U+202E⟩b');
});

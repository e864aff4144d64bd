import test from 'node:test';
import assert from 'node:assert/strict';
import { isMine, keepMine, labelOf, mine, ordinal, placesText } from '../part/mine.js';

test('a label has a name and a value', () => {
  for (const [text, label] of [['user=ann', 'user=ann'], ['  user=ann ', 'user=ann'], ['a=b=c', 'a=b=c'], ['user', ''], ['user=', ''], ['=ann', ''], ['', '']]) assert.equal(labelOf(text), label, text);
});

test('what has the label is mine, and nothing that every object has', () => {
  assert.equal(isMine({ user: 'ann' }, 'user=ann'), true);
  assert.equal(isMine({ user: 'a=b' }, 'user=a=b'), true);
  assert.equal(isMine({ user: 'bob' }, 'user=ann'), false);
  assert.equal(isMine(undefined, 'user=ann'), false);
  assert.equal(isMine({ user: 'ann' }, ''), false);
  assert.equal(isMine({ '': 'x' }, '=x'), false);
});

test('places as people say them', () => {
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 101, 111, 1002].map(ordinal), ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '101st', '111th', '1,002nd']);
  assert.equal(placesText([]), '');
  assert.equal(placesText([3]), '3rd');
  assert.equal(placesText([3, 17]), '3rd and 17th');
  assert.equal(placesText([1, 2, 3, 4, 5]), '1st, 2nd, 3rd, 4th and 5th');
  assert.equal(placesText([1, 2, 3, 4, 5, 6]), '1st, 2nd, 3rd, 4th and 2 more');
});

test('a label is kept by the browser, and a browser that keeps nothing breaks nothing', (t) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'localStorage');
  t.after(() => (before ? Object.defineProperty(globalThis, 'localStorage', before) : delete globalThis.localStorage));
  const kept = new Map();
  const storage = (/** @type {any} */ value) => Object.defineProperty(globalThis, 'localStorage', { configurable: true, get: value });
  storage(() => ({ getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) }));
  keepMine('user=ann');
  assert.equal(mine(), 'user=ann');
  keepMine('');
  assert.equal(mine(), '');
  kept.set('pawl.mine', 'no label');
  assert.equal(mine(), '');
  storage(() => { throw new Error('refused'); });
  keepMine('user=ann');
  assert.equal(mine(), '');
});

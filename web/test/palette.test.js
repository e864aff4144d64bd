import test from 'node:test';
import assert from 'node:assert/strict';
import { choices } from '../part/palette.js';
import { beside } from '../app/neighbours.js';

const known = ['Cancel', 'Executions', 'Batches', 'Work', 'Theme: dark'].map((name) => ({ name, hint: '' }));
const named = ['deploy', 'Run deploy', 'grade'].map((name) => ({ name, hint: '' }));
const found = (text) => choices(text, known, named).map((c) => c.to || c.name);

test('without a text there are orders and screens', () => {
  assert.deepEqual(found('  '), ['Cancel', 'Executions', 'Batches', 'Work', 'Theme: dark']);
  assert.equal(choices('', Array.from({ length: 40 }, () => known[0]), named).length, 12);
});

test('every word must be in a name, and names that begin so come first', () => {
  assert.deepEqual(found('dep'), ['deploy', 'Run deploy', 'executions?action=dep']);
  assert.deepEqual(found('run dep'), ['Run deploy', 'executions?where=run%20dep']);
  assert.deepEqual(found('DARK'), ['Theme: dark', 'executions?action=DARK']);
});

test('an id opens what it is of, and nothing else is offered', () => {
  assert.deepEqual(found('ex_06h1bhvc29z291tqz4e0cs0sxw'), ['executions/ex_06h1bhvc29z291tqz4e0cs0sxw']);
  assert.deepEqual(found(' sg_1 '), ['signals/sg_1']);
  assert.deepEqual(found('iq_1'), ['questions/iq_1']);
});

test('what is not a name is a label, a condition or an action, and its text is encoded', () => {
  assert.deepEqual(found('run=17&x'), ['executions?label=run%3D17%26x']);
  assert.deepEqual(found('status = failed'), ['executions?where=status%20%3D%20failed']);
  assert.deepEqual(found('a<b'), ['executions?action=a%3Cb']);
  assert.deepEqual(found('../../x?y#z'), ['executions?action=..%2F..%2Fx%3Fy%23z']);
});

test('beside a row are those before and after it in its list', () => {
  assert.deepEqual(beside(['a', 'b', 'c'], 'b'), { before: 'a', after: 'c' });
  assert.deepEqual(beside(['a', 'b'], 'b'), { before: 'a', after: '' });
  assert.deepEqual(beside(['a', 'b'], 'x'), { before: '', after: '' });
  assert.deepEqual(beside([], 'x'), { before: '', after: '' });
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { labelsOf, labelsText } from '../part/labels.js';

test('labels are pairs, separated by commas or lines', () => {
  assert.deepEqual({ ...labelsOf('team=docs, run = 7\nurl=a=b?c ,, ') }, { team: 'docs', run: '7', url: 'a=b?c' });
  assert.deepEqual({ ...labelsOf('') }, {});
  assert.deepEqual({ ...labelsOf('empty=,x=5"') }, { empty: '', x: '5"' });
});

test('what has a sign of the form in itself comes back as it was', () => {
  const texts = ['a, b', 'a,b=c', '"', '"x"', '"x" y', 'a\nb', 'a\r\nb', ' spaced ', '\\', '\\"', '', '=', '%', '+', 'ü👩‍💻', '\u2028', '\u00a0', '__proto__', ',', '\t'];
  for (const v of texts) {
    for (const k of [...texts, 'k']) {
      const all = { first: 'x', [k]: v, last: 'y' };
      assert.deepEqual({ ...labelsOf(labelsText(all)) }, all, JSON.stringify(all));
      assert.doesNotMatch(labelsText(all), /[\r\n]/); // a field of one line takes line breaks away
    }
  }
});

test('a text that is not a label is not left out in silence', () => {
  for (const bad of ['docs', 'a=1, docs', '=x', 'a=1, "b, c=2']) assert.throws(() => labelsOf(bad), /is not a label/, bad);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { written } from '../part/written.js';
import { Lines, drawn } from '../part/lines.js';

/** @param {any} v @returns {any[]} */
const flat = (v) => (Array.isArray(v) ? v.flatMap(flat) : [v]);
/** @param {any} v */
const textOf = (v) => flat(v).map((p) => (typeof p === 'string' ? p : flat(p.props.children).join(''))).join('');

test('lines keep their colours and their ends', () => {
  assert.equal(textOf(written('a\u001b[31mb\n\nc\u001b[0m\nd\n')), 'ab\n\nc\nd\n');
  assert.deepEqual(flat(written('\u001b[31mb\nc')).filter((p) => typeof p !== 'string').map((p) => p.props.class), ['f1', 'f1']);
  assert.equal(written('plain\n'), 'plain\n');
});

test('however many colours there are, few of them become elements', () => {
  const line = '\u001b[31mx\u001b[32my'.repeat(1000);
  const v = written(`${line}\n`.repeat(100));
  assert.ok(flat(v).filter((p) => typeof p !== 'string').length <= 1500);
  assert.equal(textOf(v), `${'xy'.repeat(1000)}\n`.repeat(100));
  const l = new Lines();
  l.add('stdout', `${line}\n`);
  assert.equal(drawn(l.all[0], 0).pieces.length, 1);
});

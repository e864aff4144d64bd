import test from 'node:test';
import assert from 'node:assert/strict';
import { codeResult } from '../part/coderesult.js';

const of = (/** @type {unknown} */ output, kind = 'code') => codeResult({ kind, output });

test('a result is read as it is', () => {
  const r = of({ verdict: 'wrong_answer', exit_code: 0, wall_ms: 5, stdout: 'x', stdout_bytes: 1, cases: [{ name: 'a', verdict: 'ok', wall_ms: 2 }], summary: { total: 1, passed: 1 }, files: [{ path: 'f', size: 3, mode: '0644' }], refused: ['g'], compile: { verdict: 'ok', stderr: 'w' } });
  assert.deepEqual([r?.verdict, r?.exit_code, r?.wall_ms, r?.stdout, r?.stderr], ['wrong_answer', 0, 5, 'x', '']);
  assert.deepEqual(r?.cases?.map((c) => [c.name, c.verdict, c.wall_ms]), [['a', 'ok', 2]]);
  assert.deepEqual([r?.summary, r?.files, r?.refused, r?.compile], [{ total: 1, passed: 1 }, [{ path: 'f', size: 3, mode: '0644' }], ['g'], { verdict: 'ok', stderr: 'w' }]);
});

test('what has no verdict, or is not of code, is no result', () => {
  for (const o of [undefined, null, 5, 'text', [], {}, { cases: 5 }, { cases: [null] }, { verdict: 1, stdout: 5 }, [{ verdict: 'ok' }]]) assert.equal(of(o), null);
  assert.equal(of({ verdict: 'ok', cases: [{ name: 'a' }] }, 'noop'), null);
});

test('members of other types are left out', () => {
  const odd = { toString: 1, valueOf: 1 };
  const r = of({ verdict: 'ok', stdout: 5, stdout_bytes: 7, stderr: odd, exit_code: null, reason: odd, wall_ms: 'x', cases: [null, 5, 'a', [], {}, { name: 5 }, { name: 'b', verdict: odd, mismatch: { got: 1 } }], summary: { total: '1' }, files: [null, { path: odd }, { path: 'f', size: 'x' }], refused: [odd, 'g', null], compile: { stdout: 3 } });
  assert.deepEqual(r, { verdict: 'ok', stdout: '', stdout_bytes: 7, stderr: '', cases: [{ name: 'b', verdict: '', mismatch: undefined }], files: [{ path: 'f', size: 0 }], refused: ['g'], compile: { verdict: '' } });
  assert.deepEqual(of({ verdict: 'ok', cases: 5, files: {}, compile: 'x' })?.cases, []);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { codeResult } from '../part/coderesult.js';
import { gaugesOf } from '../part/gauges.js';

const of = (/** @type {unknown} */ output, kind = 'code') => codeResult({ kind, output });

test('a result is read as it is', () => {
  const r = of({ verdict: 'wrong_answer', exit_code: 0, wall_ms: 5, stdout: 'x', stdout_bytes: 1, cases: [{ name: 'a', verdict: 'ok', wall_ms: 2 }], summary: { total: 1, passed: 1 }, files: [{ path: 'f', size: 3, mode: '0644' }], refused: ['g'], compile: { verdict: 'ok', stderr: 'w' } });
  assert.deepEqual([r?.verdict, r?.exit_code, r?.wall_ms, r?.stdout, r?.stderr], ['wrong_answer', 0, 5, 'x', '']);
  assert.deepEqual(r?.cases?.map((c) => [c.name, c.verdict, c.wall_ms]), [['a', 'ok', 2]]);
  assert.deepEqual([r?.summary, r?.files, r?.refused, r?.compile], [{ total: 1, passed: 1 }, [{ path: 'f', size: 3, mode: '0644' }], ['g'], { verdict: 'ok', stderr: 'w' }]);
});

test('a case keeps where it differs, its bytes and its dialogue', () => {
  const kept = (/** @type {object} */ c) => of({ verdict: 'wrong_answer', cases: [{ name: 'a', verdict: 'wrong_answer', ...c }] })?.cases?.[0];
  assert.deepEqual(kept({ mismatch: { path: '[2].name', got: '1', want: '2' } })?.mismatch, { path: '[2].name', got: '1', want: '2' });
  assert.deepEqual(kept({ mismatch: { got: 'null', want: '[]' } })?.mismatch, { got: 'null', want: '[]' });
  assert.equal(kept({ stdout: '\ufffd', stdout_base64: '/w==' })?.stdout_base64, '/w==');
  const turns = [{ by: 'program', text: '50\n' }, { by: 'interactor', text: '\ufffd', base64: '/w==', omitted: 7 }];
  assert.deepEqual(kept({ transcript: turns })?.transcript, turns);
  assert.equal(kept({ transcript: 'x' })?.transcript, undefined);
});

test('what was used is set against the limits in force; with cases, of the one that used most', () => {
  const say = (/** @type {unknown} */ o) => gaugesOf(/** @type {any} */ (of(o))).map((g) => [g.name, g.used, g.limit, g.hit]);
  const limits = { wall: '10s', cpu: '1m30s', memory: 64e6, output: 1e6, pids: 64, disk: 5e6 };
  const rest = [['Processes', NaN, 64, false], ['Disk', NaN, 5e6, false]];
  assert.deepEqual(say({ verdict: 'ok', wall_ms: 5, cpu_ms: 4, peak_memory_bytes: 3, stdout_bytes: 2, stderr_bytes: 1, limits, limits_hit: ['memory'] }), [['Wall time', 5, 10000, false], ['CPU time', 4, 90000, false], ['Peak memory', 3, 64e6, true], ['Output', 3, 1e6, false], ...rest]);
  assert.deepEqual(say({ verdict: 'timeout', wall_ms: 12, limits, cases: [{ name: 'a', wall_ms: 9, stdout_bytes: 1 }, { name: 'b', wall_ms: 3, cpu_ms: 2, stderr_bytes: 5 }] }), [['Wall time, longest case', 9, 10000, true], ['CPU time, longest case', 2, 90000, false], ['Peak memory', 0, 64e6, false], ['Output, most of a case', 5, 1e6, false], ...rest]);
  assert.deepEqual(say({ verdict: 'ok', limits, limits_hit: ['pids'] }).slice(4), [['Processes', NaN, 64, true], ['Disk', NaN, 5e6, false]]);
  assert.deepEqual(say({ verdict: 'ok', limits: 5, limits_hit: 'wall' }).map((g) => g[2]), [NaN, NaN, NaN, NaN]);
});

test('what has no verdict, or is not of code, is not a result', () => {
  for (const o of [undefined, null, 5, 'text', [], {}, { cases: 5 }, { cases: [null] }, { verdict: 1, stdout: 5 }, [{ verdict: 'ok' }]]) assert.equal(of(o), null);
  assert.equal(of({ verdict: 'ok', cases: [{ name: 'a' }] }, 'noop'), null);
});

test('members of other types are left out', () => {
  const odd = { toString: 1, valueOf: 1 };
  const r = of({ verdict: 'ok', stdout: 5, stdout_bytes: 7, stderr: odd, exit_code: null, reason: odd, wall_ms: 'x', cases: [null, 5, 'a', [], {}, { name: 5 }, { name: 'b', verdict: odd, mismatch: { got: 1 } }], summary: { total: '1' }, files: [null, { path: odd }, { path: 'f', size: 'x' }], refused: [odd, 'g', null], compile: { stdout: 3 } });
  assert.deepEqual(r, { verdict: 'ok', stdout: '', stdout_bytes: 7, stderr: '', cases: [{ name: 'b', verdict: '', mismatch: undefined }], files: [{ path: 'f', size: 0 }], refused: ['g'], compile: { verdict: '' } });
  assert.deepEqual(of({ verdict: 'ok', cases: 5, files: {}, compile: 'x' })?.cases, []);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { behind, heldBy, passed, placesOf, wouldGo, yoursIn } from '../part/standing.js';

const standing = (...places) => places.map((place) => ({ place, execution: { id: `ex_${place}` } }));

test('yours are found in their own line, whatever lines the other answer has', () => {
  const gpu = { handler: '', runtime: 'docker', worker_labels: { gpu: 'a100', zone: 'b' }, ready: 2, line: standing(1, 2) };
  const any = { ready: 1, line: standing(1) };
  const paused = { paused_action: 'deploy', ready: 1, line: standing(1) };
  const yours = [{ ...paused, line: standing(1) }, { runtime: 'docker', worker_labels: { zone: 'b', gpu: 'a100' }, ready: 2, line: standing(2) }];
  assert.deepEqual(yoursIn(gpu, yours), standing(2));
  assert.deepEqual(yoursIn(paused, yours), standing(1));
  assert.deepEqual(yoursIn(any, yours), []);
  assert.deepEqual(yoursIn(any, undefined), []);
});

test('places are of all that wait, and those behind the shown ones are counted by place', () => {
  assert.equal(placesOf(standing(3, 17), 1240), '3rd and 17th of 1,240');
  assert.equal(placesOf([], 5), '');
  assert.equal(behind(standing(1, 2, 3), 10), 7);
  assert.equal(behind(standing(1), 0), 0); // the count is older than the rows
  assert.equal(behind([], 4), 4);
});

test('a holder is with a worker by name, with the engine, or with none yet', () => {
  const names = new Map([['ws_1', 'box-1']]);
  assert.equal(heldBy({ status: 'running', worker: 'ws_1' }, names), 'box-1');
  assert.equal(heldBy({ status: 'running', worker: 'ws_2\u202e' }, names), 'ws_2⟨U+202E⟩');
  assert.equal(heldBy({ status: 'running' }, names), 'the engine');
  assert.equal(heldBy({ status: 'scheduled' }, names), '');
  assert.equal(heldBy({ status: 'completed' }, names), '');
});

test('with another limit as many would go as there would be slots, and no more than wait', () => {
  assert.equal(wouldGo(3, 1, 5), 2);
  assert.equal(wouldGo(30, 1, 5), 5);
  assert.equal(wouldGo(2, 4, 5), 0);
});

test('a row was passed by what came later with a higher priority: before it in the line, or with its key', () => {
  const at = (id, minute, more) => ({ id, queued_at: `2026-01-01T00:${minute}:00Z`, ...more });
  const line = (...all) => all.map((execution, i) => ({ place: i + 1, execution }));
  const ids = (rows, holders = []) => Object.fromEntries([...passed(rows, holders)].map(([id, by]) => [id, by.map((x) => x.id)]));
  const urgent = at('urgent', '30', { priority: 10 });
  assert.deepEqual(ids(line(urgent, at('first', '10'), at('last', '40'))), { first: ['urgent'] });
  assert.deepEqual(ids(line(at('first', '10'), at('next', '20')), [urgent]), { first: ['urgent'], next: ['urgent'] });
  assert.deepEqual(ids(line(at('early', '05', { priority: 10 }), at('first', '10'))), {}, 'it was there before');
});

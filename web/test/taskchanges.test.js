import test from 'node:test';
import assert from 'node:assert/strict';
import { tasksAfter } from '../part/taskchanges.js';

const task = (/** @type {string} */ name, /** @type {string} */ status) => ({ name, status, action: 'noop' });

test('tasks that have changed take their places, the others stay', () => {
  const first = tasksAfter(null, 'tasks', { workflow: 'w', status: 'running', attempt: 1, tasks: [task('a', 'running'), task('b', 'pending')] });
  const then = tasksAfter(first, 'task-changes', { status: 'running', attempt: 1, tasks: [{ place: 1, task: task('b', 'running') }] });
  assert.deepEqual(then?.tasks.map((t) => t.status), ['running', 'running']);
  assert.equal(then?.tasks[0], first?.tasks[0]);
  assert.equal(first?.tasks[1].status, 'pending');
  const over = tasksAfter(then, 'task-changes', { status: 'completed', attempt: 1, tasks: [] });
  assert.deepEqual([over?.status, over?.workflow, over?.tasks.length], ['completed', 'w', 2]);
});

test('nothing of another attempt is mixed in', () => {
  const second = { workflow: 'w', status: 'running', attempt: 2, tasks: [task('a', 'running')] };
  for (const [event, data] of /** @type {[string, any][]} */ ([['tasks', { ...second, attempt: 1, tasks: [] }], ['task-changes', { status: 'failed', attempt: 1, tasks: [{ place: 0, task: task('a', 'failed') }] }], ['task-changes', { status: 'running', attempt: 3, tasks: [] }], ['end', {}]])) {
    assert.equal(tasksAfter(second, event, data), second);
  }
  assert.equal(tasksAfter(null, 'task-changes', { status: 'running', attempt: 1, tasks: [] }), null);
  assert.equal(tasksAfter(second, 'tasks', { ...second, attempt: 3 })?.attempt, 3);
});

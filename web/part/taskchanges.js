// The tasks of a workflow from a stream: all at first, then the changed ones, by index.

/** @typedef {import('../types').Tasks} Tasks */

/**
 * The tasks after a message.
 * @param {Tasks|null} now
 * @param {string} event
 * @param {any} data
 * @returns {Tasks|null}
 */
export function tasksAfter(now, event, data) {
  if (now && data.attempt < now.attempt) return now;
  if (event === 'tasks') return data;
  if (event !== 'task-changes' || !now || data.attempt !== now.attempt) return now;
  const tasks = [...now.tasks];
  for (const c of data.tasks) tasks[c.place] = c.task;
  return { ...now, status: data.status, tasks };
}

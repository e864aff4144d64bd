// All executions of one task of a workflow, as they come.
import { useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { poll } from '../app/stream.js';
import { open } from '../part/status.js';

/** @typedef {import('../types').Task} Task */

const most = 10000; // items that are asked for
const every = 5000;

/** The items of a task, again and again while there may be news. @param {{id: string, task: Task, wanted: string}} p id: of the workflow; wanted: a status, or '' for all */
export function useItems({ id, task, wanted }) {
  const key = `${task.name}\n${wanted}`;
  const [state, set] = useState({ key: '', page: /** @type {import('../types').TaskItems|null} */ (null), error: /** @type {unknown} */ (null) });
  const over = !open(task.status);
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      try {
        const page = await getJSON(`api/v1/executions/${id}/tasks/${encodeURIComponent(task.name)}/items${query({ status: wanted, limit: most })}`);
        if (mine) set({ key, page, error: null });
      } catch (error) {
        if (mine) set((s) => ({ key, page: s.key === key ? s.page : null, error }));
        throw error;
      }
      return over ? false : undefined;
    }, every);
    return () => {
      mine = false;
      stop();
    };
  }, [id, key, over]);
  return state.key === key ? state : { page: null, error: null };
}

// Data that a screen polls.
import { useEffect, useState } from '../vendor/preact.js';
import { poll } from './stream.js';

/**
 * The latest result of load, which poll calls, and calls anew when one of deps changes; null until the first.
 * @template T
 * @param {() => Promise<T>} load
 * @param {number} every
 * @param {any[]} deps
 * @param {boolean} [hears] see poll
 * @param {(data: T) => number} [good] see poll
 */
export function useLooked(load, every, deps, hears, good) {
  const [state, set] = useState(/** @type {{data: T|null, error: unknown, of: string}} */ ({ data: null, error: null, of: '' }));
  const [round, next] = useState(0);
  const of = JSON.stringify(deps);
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      try {
        const data = await load();
        if (mine) set({ data, error: null, of });
        return good?.(data);
      } catch (error) {
        if (mine) set((s) => ({ ...s, error, of }));
        throw error;
      }
    }, every, hears);
    return () => {
      mine = false;
      stop();
    };
  }, [of, round]);
  return { ...(state.of === of ? state : { data: null, error: null }), again: () => next((n) => n + 1) };
}

// The list from which an execution was opened: where Esc and the crumb lead back to, and what stands before and after it.
import { signal } from '../vendor/preact.js';

/** The list that was shown last: its address, and the ids of its rows in their order. */
export const list = signal({ address: 'executions', ids: /** @type {string[]} */ ([]) });

/** @param {string} address @param {string[]} ids */
export function listed(address, ids) {
  const l = list.value;
  if (l.address !== address || l.ids.length !== ids.length || l.ids.some((id, i) => id !== ids[i])) list.value = { address, ids };
}

/** What stands before and after an id; '' where nothing does. @param {string[]} ids @param {string} id */
export function beside(ids, id) {
  const i = ids.indexOf(id);
  return { before: i > 0 ? ids[i - 1] : '', after: i >= 0 && i < ids.length - 1 ? ids[i + 1] : '' };
}

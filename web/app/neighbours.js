// The list from which an execution was opened: Esc and the crumb lead back to it; and the execution's neighbours in it.
import { signal } from '../vendor/preact.js';

/** The list that was shown last: its address, and the ids of its rows in their order. */
export const list = signal({ address: 'executions', ids: /** @type {string[]} */ ([]) });

/** @param {string} address @param {string[]} ids */
export function listed(address, ids) {
  const l = list.value;
  if (l.address !== address || l.ids.length !== ids.length || l.ids.some((id, i) => id !== ids[i])) list.value = { address, ids };
}

/** The ids before and after an id; '' for none. @param {string[]} ids @param {string} id */
export function beside(ids, id) {
  const i = ids.indexOf(id);
  return { before: i > 0 ? ids[i - 1] : '', after: i >= 0 && i < ids.length - 1 ? ids[i + 1] : '' };
}

// The orders for an execution: to end if it has not ended, or else to run again.
import { open } from '../part/status.js';

/** Kinds that run nothing that writes. */
export const silent = ['sleep', 'ask', 'wait', 'noop', 'input', 'output'];

/** Whether it is interactive. @param {import('../types').Execution} x */
export const interactive = (x) => x.kind === 'code' && /** @type {any} */ (x.input)?.interactive === true;

/** @typedef {{word: string, path: string, title: string, says: string, button: string, danger: boolean}} Order */

/** Submitting an ended one anew. @type {Order} */
const retrying = { word: 'Run again', path: 'retry', title: 'Run it again?', says: 'The same request is submitted anew, as an execution of its own. This one stays as it is.', button: 'Run again', danger: false };

/** The orders that an execution accepts now. @param {{status: string, kind?: string}} x */
export const orderOf = (x) => (open(x.status) ? endingOf(x) : retrying);

/** How an open execution is ended now. Cancel and kill are one order; the word is that of what happens. @param {{status: string, kind?: string}} x @returns {Order} */
export function endingOf(x) {
  const runs = x.status === 'running' || x.status === 'provisioning';
  if (runs && !silent.includes(x.kind || '') && x.kind !== 'workflow') {
    return { word: 'Kill', path: 'kill', title: 'Kill this execution?', says: 'What it runs is killed, with everything that it has started. It ends as cancelled once its worker has confirmed that nothing is left running.', button: 'Kill it', danger: true };
  }
  const says = x.kind === 'workflow' ? 'It starts nothing more, and its open tasks are cancelled: what they run is killed.' : 'It ends as cancelled and will not run.';
  return { word: 'Cancel', path: 'cancel', title: 'Cancel this execution?', says, button: 'Cancel the execution', danger: true };
}

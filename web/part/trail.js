// What an execution waits for, and the causes of that in turn: as one sentence and as a small graph.
import { html } from '../vendor/preact.js';
import { line, clock, shortID } from '../app/text.js';
import { statusShape, waitWord } from './status.js';

/** @typedef {import('../types').Why} Reason */

/** How an execution is called. @param {Reason} w */
export const nameOf = (w) => (w.task ? `${line(w.task, 60)}${w.index ? `[${w.index}]` : ''}` : line(w.action, 60));

/** The state of one step, as the end of a sentence that starts with its name. @param {Reason} w */
export function doing(w) {
  switch (w.waiting) {
    case 'key': return `waits for key ${line(w.key, 80)}`;
    case 'queue': return `waits for a free slot of queue ${line(w.queue, 60)}`;
    case 'worker': return w.worker ? `runs on worker ${line(w.worker, 60)}` : `waits for a worker that can run it`;
    case 'children': return 'waits for its tasks';
    case 'sleep': return w.until ? `sleeps until ${clock(w.until)}` : 'sleeps';
    case 'time': return w.until ? `starts at ${clock(w.until)}` : 'waits for its time';
    case 'retry': return w.until ? `is tried again at ${clock(w.until)}` : 'waits for its next attempt';
    case 'answer': return 'waits for an answer';
    case 'signal': return 'waits for a signal';
    case 'paused': return w.paused ? `waits until ${w.paused.kind} ${line(w.paused.name, 60)} is resumed` : 'waits for the end of a pause';
    case 'cancel': return 'is being ended';
    case 'nothing': return 'has ended';
    default: return `waits for ${waitWord(w.waiting).toLowerCase()}`;
  }
}

/** How a step leads to the next: the key that it holds, or the task that its wait goes back to. @param {Reason} w */
const leads = (w) => (w.root ? 'a task of it' : `holds key ${line(w.key, 60)}`);

/** The trail in one sentence. @param {Reason[]} all from the execution itself on @param {boolean} loop */
export function trailSentence(all, loop) {
  const parts = all.map((w, i) => {
    if (i === 0) return `${nameOf(w)} ${doing(w)}`;
    const before = all[i - 1];
    return before.root ? `of which ${nameOf(w)} ${doing(w)}` : `which ${nameOf(w)} holds; that ${doing(w)}`;
  });
  return parts.join(', ') + (loop ? ', and that leads back to where it began.' : '.');
}

/** @param {{all: Reason[], loop: boolean}} p all: from the execution itself on */
export const trailGraph = ({ all, loop }) => html`
  <ol class="chain" aria-label="The trail as a graph">
    ${all.map((w, i) => html`
      <li key=${w.id}>
        ${i > 0 ? html`
          <span class="leads user">
            <span class="cut">${leads(all[i - 1])}</span>
            <svg viewBox="0 0 32 10" width="32" height="10" aria-hidden="true"><path d="M0 5h28M24 1l5 4-5 4" class="arrow" /></svg>
          </span>` : null}
        <a class="stop" href=${`executions/${w.id}/why`} aria-current=${i === 0 ? 'true' : undefined}>
          ${statusShape(w.status)}
          <span class="user cut">${nameOf(w)}</span>
          <span class="mono small muted">${shortID(w.id)}</span>
          <span class="small muted user">${doing(w)}</span>
        </a>
      </li>`)}
    ${loop ? html`<li><span class="leads bad">back to where it began</span></li>` : null}
  </ol>`;

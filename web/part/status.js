// A status is a shape, a word and a colour, so that none of them is needed alone.
import { html } from '../vendor/preact.js';

/**
 * A table for look-ups with users' texts: it has only its own entries, and no members of Object.
 * @template T @param {Record<string, T>} rows @returns {Record<string, T|undefined>}
 */
export const table = (rows) => Object.assign(Object.create(null), rows);

const looks = table({
  pending: { word: 'Pending', tone: 'idle', shape: 'dots', help: 'What it needs has not ended.' },
  skipped: { word: 'Skipped', tone: 'idle', shape: 'skip', help: 'Its condition was false.' },
  requested: { word: 'Requested', tone: 'wait', shape: 'dots', help: 'Accepted; it waits for a time, a key or its turn.' },
  scheduled: { word: 'Queued', tone: 'wait', shape: 'ring', help: 'It waits for a worker.' },
  provisioning: { word: 'Starting', tone: 'run', shape: 'half', help: 'A worker has claimed it and prepares it.' },
  running: { word: 'Running', tone: 'run', shape: 'play', help: 'It runs on its worker.' },
  asking: { word: 'Needs an answer', tone: 'late', shape: 'question', help: 'It goes on when somebody answers its question.' },
  awaiting: { word: 'Awaits a signal', tone: 'wait', shape: 'ring', help: 'It goes on when a signal comes.' },
  sleeping: { word: 'Sleeping', tone: 'wait', shape: 'ring', help: 'It goes on by itself when its time has come.' },
  completed: { word: 'Completed', tone: 'good', shape: 'check', help: 'It ended as it should.' },
  failed: { word: 'Failed', tone: 'bad', shape: 'cross', help: 'It ended with an error.' },
  cancelled: { word: 'Cancelled', tone: 'off', shape: 'slash', help: 'It was ended by an order.' },
  timed_out: { word: 'Timed out', tone: 'late', shape: 'clock', help: 'A deadline passed.' },
});

export const statuses = ['requested', 'scheduled', 'provisioning', 'running', 'completed', 'failed', 'cancelled', 'timed_out'];

/** The statuses from this index on are final. */
export const firstEnd = statuses.indexOf('completed');

/** @param {string|undefined} status */
export const open = (status) => status !== undefined && statuses.indexOf(status) >= 0 && statuses.indexOf(status) < firstEnd;

/**
 * The look of an execution: that of its status, or of what it waits for while it is running without a worker.
 * @param {{status: string, kind?: string, waiting?: string, inquiry?: string}} x an execution, or the one of a task
 */
export function shownAs({ status, kind, waiting, inquiry }) {
  if (status !== 'running' || ['cancel', 'paused', 'aside'].includes(waiting || '')) return status;
  if (inquiry || kind === 'ask') return 'asking';
  return kind === 'wait' ? 'awaiting' : kind === 'sleep' ? 'sleeping' : status;
}

/** @param {string} status */
export const look = (status) => looks[status] || { word: status, tone: 'idle', shape: 'dots', help: '' };

const ring = 'M1.8 8a6.2 6.2 0 1 0 12.4 0a6.2 6.2 0 1 0-12.4 0';

/** The paths of each shape in a square of 16, each with what it is: a line, a filled area, or a line that is cut out of one. @type {Record<string, [string, string][]>} */
const shapes = {
  dots: [['line dotted', ring]],
  ring: [['line', ring], ['line', 'M8 4.8V8l2.2 1.4']],
  half: [['line', ring], ['fill', 'M8 3.8a4.2 4.2 0 0 1 0 8.4z']],
  play: [['line track', ring], ['line spin', 'M8 1.8a6.2 6.2 0 0 1 6.2 6.2'], ['fill', 'M6.6 5.3 10.9 8l-4.3 2.7z']],
  check: [['fill', 'M1 8a7 7 0 1 0 14 0a7 7 0 1 0-14 0'], ['cut', 'M4.9 8.2 7.1 10.4 11.2 6']],
  cross: [['fill', 'M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z'], ['cut', 'M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6']],
  slash: [['line', ring], ['line', 'M4.2 11.8l7.6-7.6']],
  clock: [['fill', 'M8 1.2 15.2 14.2H.8z'], ['cut', 'M8 5.8v4'], ['cut', 'M8 11.8v.4']],
  question: [['fill', 'M1 8a7 7 0 1 0 14 0a7 7 0 1 0-14 0'], ['cut', 'M5.9 6.2a2.1 2.1 0 1 1 3 1.9c-.6.3-.9.7-.9 1.4'], ['cut', 'M8 11.9v.1']],
  skip: [['line', 'M3 4l4 4-4 4M8.5 4l4 4-4 4']],
};

/** @param {string} status */
export const shapeOf = (status) => shapes[look(status).shape];

/** Only the shape, for use beside the word. @param {string} status */
export const statusShape = (status) => html`
  <svg class=${`shape ${look(status).tone}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
    ${shapeOf(status).map(([cls, d]) => html`<path class=${cls} d=${d} />`)}
  </svg>`;

/** @param {{status: string, word?: string}} p */
export const statusPill = ({ status, word }) => html`
  <span class=${`status ${look(status).tone}`} title=${look(status).help}>
    ${statusShape(status)}
    <span>${word || look(status).word}</span>
  </span>`;

const waits = table({
  nothing: 'Nothing', time: 'Its time', rate: 'Its turn under a rate', retry: 'Its next attempt', key: 'Its concurrency key', queue: 'A free slot', paused: 'The end of a pause', worker: 'A worker', children: 'Its tasks',
  sleep: 'The end of its sleep', answer: 'An answer', signal: 'A signal', cancel: 'The confirmation of its end', aside: 'Another try of the engine', 'not known': 'Not known',
});

/** The cause of an execution's wait, in words. @param {string} w as the API names it */
export const waitWord = (w) => waits[w] || w;

const verdicts = table({
  ok: 'Passed', nonzero_exit: 'Non-zero exit', signal: 'Crashed', timeout: 'Wall time limit', cpu_timeout: 'CPU time limit', oom: 'Out of memory',
  output_limit: 'Output limit', killed: 'Killed', idle: 'Idle', infra_error: 'Infrastructure', compile_error: 'Compile error', syntax_error: 'Syntax error',
  wrong_answer: 'Wrong answer', checker_error: 'Checker error', skipped: 'Not run',
  cancelled: 'Cancelled', queue_timeout: 'Waited too long', total_timeout: 'Total time limit', worker_lost: 'Worker lost', superseded: 'Superseded', key_full: 'Key full',
  rate_exceeded: 'Rate exceeded', invalid_input: 'Invalid input', handler_error: 'Handler error', internal_error: 'Internal error', expression_error: 'Expression error',
});

/** @param {string} v */
export const verdictWord = (v) => verdicts[v] || v;

/** @param {string} v */
export const verdictTone = (v) => (v === 'ok' ? 'good' : v === 'skipped' ? 'idle' : /timeout$/.test(v) ? 'late' : v === 'killed' || v === 'cancelled' ? 'off' : 'bad');

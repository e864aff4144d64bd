// The settings of a submission other than its action and input: as fields of a form, and as the API's members.
import { html } from '../vendor/preact.js';
import { goDuration } from '../app/text.js';
import { labelsOf, labelsText } from '../part/labels.js';

/** @typedef {Record<string, string>} Texts what is typed, by field */
/** @typedef {{texts: Texts, fields: Record<string, unknown>, wrong: string}} Settings fields: what the texts say, in the API's words; wrong: why they say nothing */

/** @type {[name: string, label: string, placeholder: string][]} */
const shown = [
  ['queue', 'Queue', 'the action\'s own'], ['worker_labels', 'Labels that a worker must have', 'gpu=a100'], ['priority', 'Priority: higher goes first', '0'], ['not_before', 'Starts at', '2026-11-02T10:00:00Z'],
  ['timeout', 'Most time of one attempt', 'as in 10m'], ['queue_timeout', 'Most time until a worker has it', 'as in 10m'], ['total_timeout', 'Most time of all attempts', 'as in 1h'],
  ['key', 'Concurrency key', 'as in deploy/prod'], ['limit', 'Executions with this key at once', '1'], ['rest', 'Others, as JSON', '{"retry": {"max_attempts": 3}}'],
];

/** @param {string} what @param {string} text */
function whole(what, text) {
  if (!/^-?\d{1,9}$/.test(text)) throw new Error(`${what} is a whole number, and not ${text.slice(0, 40)}`);
  return Number(text);
}

/** @param {string} text @returns {Record<string, unknown>} */
function others(text) {
  try {
    const v = JSON.parse(text);
    if (v && typeof v === 'object' && !Array.isArray(v)) return v;
  } catch {
    // It is reported below, like any other text that is not an object.
  }
  throw new Error('Other settings are an object of JSON, as in {"retry": {"max_attempts": 3}}');
}

/** The settings of texts. @param {Texts} typed @returns {Settings} */
export function settings(typed) {
  const { worker_labels: labels, priority, key, limit, rest, ...plain } = Object.fromEntries(Object.entries(typed).map(([k, v]) => [k, v.trim()]).filter(([, v]) => v !== ''));
  try {
    return {
      texts: typed, wrong: '', fields: {
        ...(rest ? others(rest) : {}), ...plain, ...(labels ? { worker_labels: labelsOf(labels) } : {}), ...(priority ? { priority: whole('The priority', priority) } : {}),
        ...(key ? { concurrency: { key, limit: whole('How many executions with a key may run at once', limit || '1') } } : {}),
      },
    };
  } catch (e) {
    return { texts: typed, fields: {}, wrong: /** @type {Error} */ (e).message };
  }
}

/**
 * The settings that an execution was submitted with. What the document of its action says as well, or by an expression, is not among them: it
 * follows from that again, perhaps otherwise for another input.
 * @param {import('../types').Execution} x
 * @param {any} doc of its action; of ad-hoc work there is none
 */
export function settingsOf(x, doc) {
  const asked = (/** @type {string} */ name, /** @type {unknown} */ v) => {
    const own = doc?.[name];
    const same = String(own) === String(v) || goDuration(String(own)) === goDuration(String(v)); // a document says 2m, the server 2m0s
    return v !== undefined && (own === undefined || (typeof own !== 'object' && !String(own).includes('${{') && !same));
  };
  /** @type {Texts} */
  const texts = {};
  for (const name of /** @type {const} */ (['priority', 'timeout', 'queue_timeout', 'total_timeout'])) if (asked(name, x[name])) texts[name] = String(x[name]);
  if (x.queue !== 'default' && asked('queue', x.queue)) texts.queue = x.queue || '';
  const wanted = Object.entries(x.worker_labels || {}).filter(([k, v]) => doc?.worker_labels?.[k] !== v);
  if (wanted.length > 0) texts.worker_labels = labelsText(Object.fromEntries(wanted));
  /** @type {Record<string, unknown>} */
  const rest = {};
  for (const name of /** @type {const} */ (['retry', 'rate', 'no_cache'])) if (asked(name, x[name])) rest[name] = x[name];
  if (x.key && asked('concurrency', x.key)) {
    if (x.fair_by) rest.concurrency = { key: x.key, limit: x.key_limit, fair_by: x.fair_by, weight: x.weight };
    else [texts.key, texts.limit] = [x.key, String(x.key_limit)];
  }
  if (Object.keys(rest).length > 0) texts.rest = JSON.stringify(rest);
  return settings(texts);
}

/** @param {{of: string, value: Settings, set: (s: Settings) => void}} p of: a name for the form that they are in */
export const Fields = ({ of, value, set }) => html`
  <div class="row form-row settings">
    ${shown.map(([name, label, placeholder]) => html`
      <div key=${name} class="field">
        <label for=${`${of}-${name}`}>${label}</label>
        <input id=${`${of}-${name}`} placeholder=${placeholder} value=${value.texts[name] || ''} spellcheck=${false}
            autocomplete="off" onInput=${(/** @type {any} */ e) => set(settings({ ...value.texts, [name]: e.target.value }))} />
      </div>`)}
  </div>
  ${value.wrong ? html`<p class="note late" role="status">${value.wrong}</p>` : null}`;

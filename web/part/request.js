// A request as commands of a shell, which give the server the same bytes again. They are of printable ASCII alone: what is pasted into a terminal is
// neither obeyed there nor changed by its settings, and the page copies no other character as it is.
import { apiURL, tokens } from '../app/api.js';

const longest = 100000; // characters of an argument: Linux takes 128 KB

/** A text as a quoted shell word (sh, bash, zsh). @param {string} s */
export const quoted = (s) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, `'\\''`)}'`);

/** JSON in one line of ASCII. All that is not ASCII in it stands in texts, and white space between them. @param {string} json */
export const ascii = (json) => json.replace(/[\t\r\n]/g, ' ').replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** How a command takes JSON: as an argument, or where that would be too long from its input. @param {string} json */
const argument = (json) => (json.length <= longest ? quoted(json) : `@- <<'EOF'\n${json}\nEOF`);

/** @param {string} path @param {string} body JSON */
export const curl = (path, body) => `curl -sS ${quoted(apiURL(path))} -H 'Content-Type: application/json'${tokens.value ? ' -H "Authorization: Bearer $PAWL_TOKEN"' : ''} --data-binary ${argument(ascii(body))}`;

/** @typedef {{cli: typeof cli, curl: typeof curl, requestOf: typeof requestOf}} Written how commands are written */
/**
 * A submission. Its fields are the API's, but for the input, which is JSON.
 * @typedef {{action: string, input?: string, labels?: Record<string, string>, worker_labels?: Record<string, string>, queue?: string, priority?: number, timeout?: string, queue_timeout?: string, total_timeout?: string,
 *   not_before?: string, start_in?: string, cache?: {ttl: string, key?: string}, retry?: import('../types').Retry, rate?: import('../types').Rate, no_cache?: boolean, concurrency?: {key: string, limit?: number, when_full?: string, fair_by?: string, weight?: number}}} Asked
 */

/** The fields that pawl run has flags for. */
const flagged = ['action', 'input', 'labels', 'worker_labels', 'queue', 'timeout', 'concurrency', 'rate', 'not_before', 'start_in', 'cache', 'no_cache'];

/** Whether pawl run can be given a label as it is: quotation marks mean something in its flags, and so do commas beside a second =. @param {[string, string]} of */
const plainLabel = ([k, v]) => !/"/.test(k + v) && !((k + v).includes('=') && (k + v).includes(','));

/** The command for what pawl run has flags for; an error names what it has none for. @param {Asked} a */
export function cli(a) {
  const without = Object.entries(a).filter(([name, v]) => v !== undefined && !flagged.includes(name)).map(([name]) => name);
  if (without.length > 0) throw new Error(`pawl run has no flag for ${without.join(', ')}`);
  const [labels, wanted] = [a.labels, a.worker_labels].map((o) => Object.entries(o || {}));
  const wrong = [...labels, ...wanted].find((l) => !plainLabel(l));
  if (wrong) throw new Error(`A flag of pawl run cannot hold the label ${wrong[0]} with its quotation marks or commas`);
  const { concurrency: k, rate: r } = a;
  const flags = [['--server', apiURL('').replace(/\/$/, '')]];
  const add = (/** @type {string} */ flag, /** @type {string|number|undefined} */ value) => { if (value) flags.push([flag, String(value)]); };
  for (const [name, value] of labels) add('--label', `${name}=${value}`);
  for (const [name, value] of wanted) add('--worker-label', `${name}=${value}`);
  add('--queue', a.queue);
  add('--timeout', a.timeout);
  add('--at', a.not_before);
  add('--in', a.start_in);
  if (k) {
    add('--concurrency', `${k.key}=${k.limit}`);
    add('--when-full', k.when_full);
    add('--fair-by', k.fair_by);
    add('--weight', k.weight);
  }
  if (r) {
    add('--rate', `${r.key}=${r.limit}/${r.per}`);
    add('--burst', r.burst);
    add('--over', r.over);
  }
  if (a.cache) {
    add('--cache', a.cache.ttl);
    if (a.cache.key !== undefined) flags.push(['--cache-key', a.cache.key]);
  }
  const other = flags.find(([, value]) => !/^[ -~]*$/.test(value));
  if (other) throw new Error(`What ${other[0]} would say is not of printable ASCII alone`);
  const words = flags.map(([flag, value]) => `${flag} ${quoted(value)}`);
  if (a.no_cache) words.push('--no-cache');
  if (a.input) words.push(`--input ${argument(ascii(a.input))}`);
  return `pawl run ${quoted(a.action)} ${words.join(' ')}`;
}

/**
 * What an execution was asked for, and that as the body of a request. The rest of its fields follow from that, or from its action.
 * @param {import('../types').Execution} x
 * @param {string|undefined} input its text
 * @returns {{asked: Asked, body: string}}
 */
export function requestOf(x, input) {
  const asked = {
    action: x.action + (x.version ? `@${x.version}` : ''), input, labels: x.labels, worker_labels: x.worker_labels, queue: x.queue === 'default' ? undefined : x.queue, priority: x.priority,
    timeout: x.timeout, queue_timeout: x.queue_timeout, total_timeout: x.total_timeout, retry: x.retry, rate: x.rate, no_cache: x.no_cache,
    concurrency: x.key ? { key: x.key, limit: x.key_limit, fair_by: x.fair_by, weight: x.weight } : undefined,
  };
  const parts = Object.entries(asked).filter(([, v]) => v !== undefined).map(([k, v]) => `${JSON.stringify(k)}: ${k === 'input' ? v : JSON.stringify(v)}`);
  return { asked, body: `{${parts.join(', ')}}` };
}

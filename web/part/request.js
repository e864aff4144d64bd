// A request as commands of a shell, which give the server the same bytes again. They are of printable ASCII alone: what is pasted into a terminal is
// neither obeyed there nor changed by its settings, and the page copies no other character as it is.
import { apiURL, tokens } from '../app/api.js';

const longest = 100000; // characters of an argument: Linux takes 128 KB

/** A word of a shell (sh, bash, zsh) that stands for a text. @param {string} s */
export const quoted = (s) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, `'\\''`)}'`);

/** JSON in one line of ASCII. All that is not ASCII in it stands in texts, and white space between them. @param {string} json */
export const ascii = (json) => json.replace(/[\t\r\n]/g, ' ').replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** How a command takes JSON: as an argument, or where that would be too long from its input. @param {string} json */
const argument = (json) => (json.length <= longest ? quoted(json) : `@- <<'EOF'\n${json}\nEOF`);

/** @param {string} path @param {string} body JSON */
export const curl = (path, body) => `curl -sS ${quoted(apiURL(path))} -H 'Content-Type: application/json'${tokens.value ? ' -H "Authorization: Bearer $PAWL_TOKEN"' : ''} --data-binary ${argument(ascii(body))}`;

/** @typedef {{cli: typeof cli, curl: typeof curl, requestOf: typeof requestOf}} Written how commands are written */
/** @typedef {{action: string, input?: string, labels?: Record<string, string>, worker_labels?: Record<string, string>, queue?: string, timeout?: string}} Asked input: JSON */

/** Whether pawl run can be given a label as it is: quotation marks mean something in its flags, and so do commas beside a second =. @param {[string, string]} of */
const plainLabel = ([k, v]) => /^[ -~]*$/.test(k + v) && !/"/.test(k + v) && !((k + v).includes('=') && (k + v).includes(','));

/** The command for what pawl run has flags for; '' where a label cannot be written as one. @param {Asked} a */
export function cli(a) {
  const labels = [a.labels, a.worker_labels].map((o) => Object.entries(o || {}));
  if (!labels.flat().every(plainLabel)) return '';
  const flags = [['--server', apiURL('').replace(/\/$/, '')]];
  labels.forEach((all, i) => { for (const [k, v] of all) flags.push([i === 0 ? '--label' : '--worker-label', `${k}=${v}`]); });
  if (a.queue) flags.push(['--queue', a.queue]);
  if (a.timeout) flags.push(['--timeout', a.timeout]);
  const words = flags.map(([flag, value]) => `${flag} ${quoted(value)}`);
  if (a.input) words.push(`--input ${argument(ascii(a.input))}`);
  return `pawl run ${quoted(a.action)} ${words.join(' ')}`;
}

/**
 * What an execution was asked for. The rest of its fields follow from that, or from its action.
 * @param {import('../types').Execution} x
 * @param {string|undefined} input its text
 */
export function requestOf(x, input) {
  /** @type {Record<string, unknown>} */
  const fields = {
    action: x.action + (x.version ? `@${x.version}` : ''), labels: x.labels, worker_labels: x.worker_labels, queue: x.queue === 'default' ? undefined : x.queue, priority: x.priority,
    timeout: x.timeout, queue_timeout: x.queue_timeout, total_timeout: x.total_timeout, retry: x.retry, rate: x.rate, no_cache: x.no_cache,
    concurrency: x.key ? { key: x.key, limit: x.key_limit, fair_by: x.fair_by, weight: x.weight } : undefined,
  };
  const parts = Object.entries(fields).filter(([, v]) => v !== undefined).map(([k, v]) => `${JSON.stringify(k)}: ${JSON.stringify(v)}`);
  if (input !== undefined) parts.splice(1, 0, `"input": ${input}`);
  const { action, labels, worker_labels, queue, timeout, ...rest } = fields;
  const flags = /** @type {Asked} */ ({ action, input, labels, worker_labels, queue, timeout });
  return { body: `{${parts.join(', ')}}`, cli: Object.values(rest).some((v) => v !== undefined) ? '' : cli(flags) };
}

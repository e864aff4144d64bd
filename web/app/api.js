// The API: the page uses only what docs/api.md documents.
import { signal } from '../vendor/preact.js';

/** The page's URL (with a slash at its end), with the API beside it. The document's base is relative, so it is read once, before any navigation. */
export const base = document.baseURI;
const root = new URL('../', base).href;

/** @param {string} path */
export const apiURL = (path) => new URL(path.replace(/^\//, ''), root).href;

/** Whether a login is needed: true after a response 401. No request is made then until a login. */
export const locked = signal(false);

/** Whether the server has answered since the page was loaded or logged out: the screen then stays behind a login that becomes necessary. */
export const inside = signal(false);

/** The latest reason why the server could not be reached; empty while it answers. */
export const offline = signal('');

/** Time of the server's latest answer, in milliseconds since 1970: while the page is offline, its content is at most that old. */
export let answered = Date.now();

/** Whether the server asks for tokens; then the page can log out. */
export const tokens = signal(false);

/** The archive that the server shows, read-only; null for an ordinary server. @type {{value: import('../types').Archive|null}} */
export const archive = signal(null);

const session = 'api/v1/session';

/** Logs in with a token: the response's cookie gives access to the API, and no script can read it. @param {string} token */
export async function logIn(token) {
  await post(session, { token });
  locked.value = false;
}

export async function logOut() {
  await request(session, { method: 'DELETE' });
  inside.value = false;
  locked.value = true;
}

/** Asks whether there is a session to log out of. */
export const askSession = () => getJSON(session).then((s) => { tokens.value = s.tokens; archive.value = s.archive || null; if (!s.open) locked.value = true; }, () => {});

/** An error response of the server, or none at all (status 0). */
export class Problem extends Error {
  /** @param {import('../types').Problem} p @param {number} [after] milliseconds after which to retry, if the server says so */
  constructor(p, after = 0) {
    super(p.detail || p.title);
    this.problem = p;
    this.status = p.status;
    this.after = after;
  }
}

/**
 * How many milliseconds a request may be silent: until its response begins, and between two pieces of it. The server works on a response for 60 s at
 * most (a survey of its queues and keys), and proxies give up after as long. To send a body takes as long again at most: the server reads none for longer.
 */
const patience = 60000;

/** Why there is no response, and what to do. @param {string} why @param {RequestInit} o */
function silence(why, o) {
  const next = !o.method || o.method === 'GET' ? 'Lists and streams ask again by themselves. For anything else, ask again.'
    : new Headers(o.headers).has('Idempotency-Key') ? 'It may have done what was asked. Press the button again: the request is sent under the same key and takes effect once. What you typed is still here.'
      : 'It may have done what was asked: look whether it has before you ask again. What you typed is still here.';
  return new Problem({ type: '', status: 0, title: 'The server does not answer', detail: `${why} ${next}` });
}

/** The milliseconds of Retry-After, which is in seconds or a date; an hour at most. @param {Response} res */
function retryAfter(res) {
  const text = (res.status === 429 || res.status === 503) && res.headers.get('Retry-After');
  const ms = !text ? 0 : /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return ms > 0 ? Math.min(ms, 3600000) : 0;
}

/**
 * Makes one request. It and the reading of its response reject with a Problem.
 * @param {string} path beneath the API's root, as in "api/v1/stats"
 * @param {RequestInit & {accept?: string, quiet?: number}} [o] quiet: how many milliseconds it may be silent, if not the default
 */
export async function request(path, o = {}) {
  const headers = new Headers(o.headers);
  headers.set('X-Pawl-UI', '1'); // a change needs more than the cookie: another origin's page cannot send this
  headers.set('Accept', o.accept || 'application/json');
  const quiet = o.quiet ?? (o.body ? 2 * patience : patience);
  const mine = new AbortController();
  const signal = o.signal ? AbortSignal.any([o.signal, mine.signal]) : mine.signal;
  /** @type {Problem|null} */
  let late = null;
  let fail = (/** @type {Problem} */ _) => {};
  const ring = () => {
    late = silence(`The server has not answered for ${quiet / 1000} s: it is busy, or the network holds the answer back.`, o);
    fail(late);
    mine.abort();
  };
  let timer = setTimeout(ring, quiet);
  /** @type {Response} */
  let res;
  try {
    res = await fetch(apiURL(path), { ...o, headers, cache: 'no-store', credentials: 'same-origin', signal });
  } catch (e) {
    clearTimeout(timer);
    if (!late && e instanceof DOMException && e.name === 'AbortError') throw e;
    offline.value = 'The server does not answer.';
    throw late || silence('The server does not answer: it may be stopped, or the network is away.', o);
  }
  answered = Date.now();
  offline.value = '';
  clearTimeout(timer);
  if (res.body && res.status !== 304 && res.status !== 204) { // such a response may have an empty body, with which no Response can be made
    const arm = () => { clearTimeout(timer); timer = setTimeout(ring, quiet); };
    res = new Response(res.body.pipeThrough(new TransformStream({
      start(c) { fail = (p) => c.error(p); arm(); },
      transform(piece, c) { arm(); c.enqueue(piece); },
      flush() { clearTimeout(timer); },
    })), res);
  }
  if (res.ok || res.status === 304) {
    if (path !== session && !locked.value) inside.value = true; // a response to an earlier request may come after a log-out
    return res;
  }
  /** @type {import('../types').Problem} */
  let p = { type: '', status: res.status, title: res.statusText || `Status ${res.status}` };
  try {
    p = { ...p, ...(await res.json()) };
  } catch {
    // Something between the page and the server answered, not in JSON: its status is enough.
  }
  if (res.status === 401) locked.value = true;
  throw new Problem(p, retryAfter(res));
}

/**
 * @template T
 * @param {string} path
 * @param {RequestInit & {quiet?: number}} [o]
 * @returns {Promise<T>}
 */
export const getJSON = async (path, o) => (await request(path, o)).json();

/**
 * @template T
 * @param {string} path
 * @param {unknown} body
 * @param {Record<string, string>} [headers]
 * @returns {Promise<T>}
 */
export const post = async (path, body, headers) => (await request(path, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
})).json();

/** @param {Record<string, string|number|boolean|undefined|string[]>} q */
export function query(q) {
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(q)) {
    for (const one of Array.isArray(v) ? v : [v]) {
      if (one !== undefined && one !== '' && one !== false) p.append(k, String(one));
    }
  }
  const s = p.toString();
  return s ? '?' + s : '';
}

/** Hands a file to the browser's downloads. The server sends every file as an attachment. @param {string} path @param {string} name */
export function download(path, name) {
  const a = document.createElement('a');
  a.href = apiURL(path);
  a.download = name;
  a.click();
}

// The API, and only that: the page knows nothing that a client of docs/api.md does not.
import { signal } from '../vendor/preact.js';

/** Where the page lies (with a slash at its end), and the API beside it. The document's base is relative, so it is read once, before any navigation. */
export const base = document.baseURI;
const root = new URL('../', base).href;

/** @param {string} path */
export const apiURL = (path) => new URL(path.replace(/^\//, ''), root).href;

/** What the server says about who may come in: true once an answer was 401. Nothing is asked then until a login. */
export const locked = signal(false);

/** Whether the server has answered since the page was loaded, or logged out of: what is on the screen then stays behind a login that has become necessary. */
export const inside = signal(false);

/** The last thing that kept the page from the server: empty while it answers. */
export const offline = signal('');

/** Whether the server asks for tokens; then the page can log out. */
export const tokens = signal(false);

const session = 'api/v1/session';

/** Logs in with a token: the answer's cookie opens the API, and no script can read it. @param {string} token */
export async function logIn(token) {
  await post(session, { token });
  locked.value = false;
}

export async function logOut() {
  await request(session, { method: 'DELETE' });
  inside.value = false;
  locked.value = true;
}

/** Asks whether there is anything to log out of. */
export const askSession = () => getJSON(session).then((s) => { tokens.value = s.tokens; if (!s.open) locked.value = true; }, () => {});

/** An answer of the server that is a problem, or no answer at all (status 0). */
export class Problem extends Error {
  /** @param {import('../types').Problem} p */
  constructor(p) {
    super(p.detail || p.title);
    this.problem = p;
    this.status = p.status;
  }
}

/**
 * One request. Rejects with a Problem.
 * @param {string} path beneath the API's root, as in "api/v1/stats"
 * @param {RequestInit & {accept?: string}} [o]
 */
export async function request(path, o = {}) {
  const headers = new Headers(o.headers);
  headers.set('X-Pawl-UI', '1'); // a cookie alone changes nothing: another origin's page cannot send this
  headers.set('Accept', o.accept || 'application/json');
  /** @type {Response} */
  let res;
  try {
    res = await fetch(apiURL(path), { ...o, headers, cache: 'no-store', credentials: 'same-origin' });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    offline.value = 'The server does not answer.';
    throw new Problem({ type: '', status: 0, title: 'The server does not answer', detail: 'The server does not answer: it may be stopped, or the network is away. The page tries again by itself.' });
  }
  offline.value = '';
  if (res.ok || res.status === 304) {
    if (path !== session) inside.value = true;
    return res;
  }
  /** @type {import('../types').Problem} */
  let p = { type: '', status: res.status, title: res.statusText || `Status ${res.status}` };
  try {
    p = { ...p, ...(await res.json()) };
  } catch {
    // Something between the page and the server answered, and not in JSON: its status says enough.
  }
  if (res.status === 401) locked.value = true;
  throw new Problem(p);
}

/**
 * @template T
 * @param {string} path
 * @param {RequestInit} [o]
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

// Server-sent events read with fetch, because EventSource can send no header and hides a refusal. There is one stream per visible
// tab: browsers allow six connections to a host over HTTP/1.1, and a hidden tab must not hold one.
import { effect, signal, untracked } from '../vendor/preact.js';
import { locked, request, Problem } from './api.js';

/** The state of this tab's stream; '' if none is open. */
export const streaming = signal(/** @type {''|'connecting'|'live'|'paused'|'over'} */ (''));

/** How long a tab may be hidden before its stream is closed. */
const hiddenFor = 10000;

/** How long a stream may be silent: the server sends a keep-alive every 15 s, so after three missing ones the connection is dead. */
const quiet = 45000;

/** The milliseconds until a retry, as the server asks, and up to a quarter more: not all tabs retry at the same time. @param {unknown} e */
const alone = (e) => (e instanceof Problem ? e.after * (1 + Math.random() / 4) : 0);

/** Whether an error ends the retries of a stream: 500 and more may come from a proxy while the server restarts, and a login may follow a 401. @param {unknown} e */
const final = (e) => e instanceof Problem && e.status >= 400 && e.status < 500 && ![401, 408, 429].includes(e.status);

/** Calls f now unless a login is needed, and after each login. Returns a function that ends that. @param {() => void} f */
const whenOpen = (f) => effect(() => { if (!locked.value) untracked(f); });

/**
 * Splits a stream into messages. Returns a function to call with each piece of text.
 * @param {(m: {event: string, id: string, data: string}) => void} message
 */
export function parser(message) {
  let rest = '';
  let event = '';
  let id = '';
  /** @type {string[]} */
  let data = [];
  return (/** @type {string} */ piece) => {
    rest += piece;
    let from = 0;
    for (let end; (end = rest.indexOf('\n', from)) >= 0; from = end + 1) {
      const line = rest.slice(from, rest[end - 1] === '\r' ? end - 1 : end);
      if (line === '') {
        if (data.length > 0) message({ event: event || 'message', id, data: data.join('\n') });
        event = '';
        data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'event') event = value;
      else if (field === 'data') data.push(value);
      else if (field === 'id') id = value;
    }
    rest = rest.slice(from);
  };
}

/**
 * Follows a stream until its end message, resuming by id, closed while the tab is hidden. Returns a function that stops it.
 * @param {string} path
 * @param {(event: string, data: any, raw: string) => void} message the event's name, its data, and their text
 * @param {{after?: string, failed?: (p: Problem) => void, unseen?: boolean}} [o] unseen: the page does not show the stream's state
 */
export function follow(path, message, o = {}) {
  let last = o.after || '';
  let stopped = false;
  let over = false;
  let wait = 1000;
  let earliest = 0; // time of the next allowed request
  /** @type {AbortController|null} */
  let open = null;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let hiding;

  const state = (/** @type {typeof streaming.value} */ s) => { if (!stopped && !o.unseen) streaming.value = s; };

  const read = async () => {
    if (stopped || over || open || document.hidden || locked.value) return;
    const left = earliest - performance.now();
    if (left > 0) {
      timer = setTimeout(read, left);
      return;
    }
    const mine = new AbortController();
    open = mine;
    state('connecting');
    try {
      const res = await request(path, { accept: 'text/event-stream', quiet, signal: mine.signal, headers: last ? { 'Last-Event-ID': last } : {} });
      state('live');
      const decoder = new TextDecoder();
      const feed = parser((m) => {
        if (stopped || mine.signal.aborted) return;
        if (m.id) last = m.id;
        if (m.event === 'end') over = true;
        wait = 1000;
        message(m.event, JSON.parse(m.data), m.data);
      });
      const body = /** @type {ReadableStream<Uint8Array>} */ (res.body).getReader();
      for (;;) {
        const { done, value } = await body.read();
        if (done) break;
        feed(decoder.decode(value, { stream: true }));
      }
    } catch (e) {
      earliest = performance.now() + alone(e);
      if (final(e)) {
        over = true;
        o.failed?.(/** @type {Problem} */ (e));
      }
    }
    if (open === mine) open = null;
    if (stopped) return;
    if (over) state('over');
    else if (document.hidden || locked.value) state('paused');
    else {
      state('connecting');
      timer = setTimeout(read, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 30000);
    }
  };

  const visibility = () => {
    clearTimeout(hiding);
    if (document.hidden) {
      hiding = setTimeout(() => {
        clearTimeout(timer);
        open?.abort();
        open = null;
        if (!over) state('paused');
      }, hiddenFor);
    } else {
      clearTimeout(timer);
      wait = 1000;
      read();
    }
  };
  document.addEventListener('visibilitychange', visibility);
  const close = whenOpen(() => {
    clearTimeout(timer);
    read();
  });
  return () => {
    close();
    state('');
    stopped = true;
    clearTimeout(timer);
    clearTimeout(hiding);
    document.removeEventListener('visibilitychange', visibility);
    open?.abort();
  };
}

/** The stream of changes has a message at least every 5 s: one that is silent for longer is delayed by a proxy, or broken. */
const silent = 10000;

/** How long data is used while the stream reports no changes: it does not report all, such as what retention removes, and another server's messages may be lost. */
const rest = 30000;

/** The listeners of changes, on one stream. */
const hearers = /** @type {Set<(news: boolean) => void>} */ (new Set());
let heard = -Infinity; // time of its latest message
/** @type {(() => void)|null} */
let unhear = null;

/** Calls hear for each message of the stream of changes. Returns a function that ends that. @param {(news: boolean) => void} hear */
function hearing(hear) {
  hearers.add(hear);
  unhear ??= follow('api/v1/executions', (_, /** @type {import('../types').Change} */ change) => {
    heard = performance.now();
    for (const one of hearers) one(!change.idle);
  }, { unseen: true });
  return () => {
    hearers.delete(hear);
    setTimeout(() => { // a screen that loads something else listens again at once
      if (hearers.size > 0 || !unhear) return;
      unhear();
      unhear = null;
      heard = -Infinity;
    }, 0);
  };
}

/**
 * Calls look repeatedly while the tab is visible: the next time 20 times its duration after it ended, and at least every
 * milliseconds later, so that a slow server gets fewer requests. look returns false when there is nothing left to look for. With hears
 * it is called only after a message of the stream of changes, or after the milliseconds that it returns, at most 30 s; while that stream is silent, as without.
 * @param {() => Promise<boolean|number|void>} look
 * @param {number} every
 * @param {boolean} [hears]
 */
export function poll(look, every, hears) {
  let stopped = false;
  let over = false;
  let busy = false;
  let news = false; // the stream reported a change since the last call began
  let earliest = 0; // when look may be called next
  let stale = 0; // time of a call without a change
  let barred = 0; // until when the server wants no request
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer;
  const next = (/** @type {number} */ at) => {
    clearTimeout(timer);
    timer = setTimeout(round, Math.max(0, at - performance.now()));
  };
  const plan = () => next(news || !hears ? earliest : Math.max(earliest, Math.min(stale, heard + silent)));
  const round = async () => {
    if (stopped || over || busy || document.hidden || locked.value) return;
    if (barred > performance.now()) return next(barred);
    busy = true;
    news = false;
    const begun = performance.now();
    let failed = false;
    let good = rest;
    try {
      const found = await look();
      over = found === false;
      if (typeof found === 'number') good = Math.min(good, found);
    } catch (e) {
      failed = true;
      barred = performance.now() + alone(e);
    }
    busy = false;
    if (stopped || over) return;
    const ended = performance.now();
    earliest = ended + Math.max(failed ? 2 * every : every, Math.min(20 * (ended - begun), 30000));
    stale = failed ? earliest : ended + good;
    plan();
  };
  const visibility = () => {
    clearTimeout(timer);
    round();
  };
  document.addEventListener('visibilitychange', visibility);
  const closeRounds = whenOpen(visibility);
  const close = hears && hearing((changed) => {
    news ||= changed;
    if (!busy) plan();
  });
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', visibility);
    closeRounds();
    if (close) close();
  };
}

import test, { mock } from 'node:test';
import assert from 'node:assert/strict';

// The modules read the document when they are loaded, and ask with fetch.
Object.assign(globalThis, { document: Object.assign(new EventTarget(), { baseURI: 'http://pawl/ui/', hidden: false }) });
const { request, getJSON, post, logOut, Problem, locked, offline, inside } = await import('../app/api.js');
const { follow, poll } = await import('../app/stream.js');

/** Answers each request by the next of answers. @param {((o: RequestInit) => Response|Promise<Response>)[]} answers */
function served(answers) {
  const asked = { n: 0 };
  globalThis.fetch = /** @type {any} */ ((/** @type {string} */ _, /** @type {RequestInit} */ o) => new Promise((resolve, reject) => {
    if (o.signal?.aborted) throw new DOMException('aborted', 'AbortError');
    o.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
    Promise.resolve(answers[Math.min(asked.n++, answers.length - 1)](o)).then(resolve, reject);
  }));
  return asked;
}
/** An answer that never comes. @returns {Promise<Response>} */
const never = () => new Promise(() => {});
const turns = async () => { for (let i = 0; i < 50; i++) await null; };
/** Lets time pass. @param {number} ms */
async function pass(ms) {
  await turns();
  mock.timers.tick(ms);
  await new Promise(setImmediate);
  await turns();
}
/** What a promise has come to. @param {Promise<unknown>} p */
function outcome(p) {
  const out = { error: /** @type {any} */ (null), over: false };
  p.then(() => { out.over = true; }, (e) => { out.over = true; out.error = e; });
  return out;
}

test.beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  mock.method(performance, 'now', () => Date.now());
});
test.afterEach(() => mock.timers.reset());

test('a request whose caller has given up already is not sent', async () => {
  const asked = served([never]);
  const got = outcome(request('api/v1/stats', { signal: AbortSignal.abort() }));
  await turns();
  assert.equal(got.error?.name, 'AbortError');
  assert.equal(asked.n, 0);
  assert.equal(offline.value, '');
});

test('what was asked for before a log-out and is answered after it shows nothing of the screen again', async () => {
  /** @type {(r: Response) => void} */
  let answer = () => {};
  served([() => new Promise((resolve) => { answer = resolve; }), async () => new Response(null, { status: 204 })]);
  const look = outcome(getJSON('api/v1/executions'));
  await turns();
  await logOut();
  answer(new Response('{}'));
  await pass(0);
  const found = [look.over, look.error, inside.value];
  locked.value = false; // for the other tests
  assert.deepEqual(found, [true, null, false]);
});

test('a caller that asks again and again under one signal keeps nothing of what has been answered', async () => {
  served([async () => new Response('{}')]);
  const stop = new AbortController();
  const add = mock.method(stop.signal, 'addEventListener');
  for (let i = 0; i < 3; i++) await getJSON('api/v1/stats', { signal: stop.signal });
  assert.equal(add.mock.callCount(), 0);
});

test('a request whose answer does not begin ends after 60 s and says what to do', async () => {
  served([never]);
  const got = outcome(getJSON('api/v1/stats'));
  await pass(59999);
  assert.equal(got.over, false);
  await pass(1);
  assert.ok(got.error instanceof Problem);
  assert.equal(got.error.status, 0);
  assert.match(got.error.message, /not answered for 60 s.*ask again/);
  assert.equal(offline.value, 'The server does not answer.');
});

test('an answer that stops on its way ends 60 s after its last piece', async () => {
  /** @type {ReadableStreamDefaultController|undefined} */
  let body;
  served([async () => new Response(new ReadableStream({ start: (c) => { body = c; } }))]);
  const got = outcome(getJSON('api/v1/stats'));
  await pass(50000);
  body?.enqueue(new TextEncoder().encode('{"a": '));
  await pass(59999);
  assert.equal(got.over, false);
  await pass(1);
  assert.ok(got.error instanceof Problem, String(got.error));
});

test('an answer that is slow and never silent comes whole, with its status and headers', async () => {
  /** @type {any} */
  let body;
  served([async () => new Response(new ReadableStream({ start: (c) => { body = c; } }), { headers: { ETag: '"1"' } })]);
  const res = await request('api/v1/stats');
  const text = res.text();
  for (const piece of ['a', 'b', 'c']) {
    await pass(50000);
    body.enqueue(new TextEncoder().encode(piece));
  }
  body.close();
  assert.deepEqual([await text, res.headers.get('ETag'), res.status], ['abc', '"1"', 200]);
});

test('an answer that says that nothing has changed comes as it is', async () => {
  const body = new Response('').body; // browsers give an empty one
  const answer = { status: 304, ok: false, body, headers: new Headers({ ETag: '"1"' }) };
  served([() => /** @type {any} */ (answer)]);
  assert.equal((await request('api/v1/executions/ex_1')).status, 304);
});

test('a request with a body has 60 s more, and says whether it may be sent again', async () => {
  served([never]);
  const got = [outcome(post('api/v1/executions', {}, { 'Idempotency-Key': 'k' })), outcome(post('api/v1/executions/ex_1/cancel', {}))];
  await pass(119999);
  assert.deepEqual(got.map((g) => g.over), [false, false]);
  await pass(1);
  assert.match(got[0].error.message, /same key and takes effect once\. What you typed is still here/);
  assert.match(got[1].error.message, /look whether it has before you ask again\. What you typed is still here/);
});

test('a request that its screen gives up is not a problem of the server', async () => {
  served([never]);
  const stop = new AbortController();
  const got = outcome(request('api/v1/stats', { signal: stop.signal }));
  stop.abort();
  await turns();
  assert.equal(got.error?.name, 'AbortError');
});

const busy = (/** @type {number} */ status, /** @type {string} */ after) => async () => new Response('{}', { status, headers: { 'Retry-After': after } });

test('a stream comes back when the server said, also after the tab was hidden', async () => {
  for (const [status, header] of /** @type {[number, () => string][]} */ ([[503, () => '20'], [429, () => new Date(Date.now() + 20000).toUTCString()]])) {
    const asked = served([busy(status, header()), async () => new Response('event: end\ndata: {}\n\n')]);
    /** @type {string[]} */
    const got = [];
    const stop = follow('api/v1/events', (event) => got.push(event));
    await pass(18000);
    document.dispatchEvent(new Event('visibilitychange'));
    await pass(999);
    assert.equal(asked.n, 1, `${status}: asked before its time`);
    await pass(8000); // a quarter of 20 s more, and parts of a second of a date
    assert.deepEqual([asked.n, got], [2, ['end']]);
    stop();
  }
});

test('a stream that brings nothing for 45 s, not even a sign of life, is opened again where it was', async () => {
  /** @type {any} */
  let body;
  /** @type {(string|null)[]} */
  const resumed = [];
  served([async (o) => {
    resumed.push(new Headers(o.headers).get('Last-Event-ID'));
    return new Response(new ReadableStream({ start: (c) => { body = c; } }));
  }]);
  const stop = follow('api/v1/events', () => {});
  await pass(0);
  body.enqueue(new TextEncoder().encode('id: 7\ndata: {}\n\n'));
  await pass(40000);
  body.enqueue(new TextEncoder().encode(': alive\n\n'));
  await pass(44999);
  assert.equal(resumed.length, 1);
  await pass(1);
  await pass(1500);
  assert.deepEqual(resumed, [null, '7']);
  stop();
});

test('what is looked at again and again waits as long as the server said', async () => {
  const asked = served([busy(503, '30')]);
  const stop = poll(() => getJSON('api/v1/stats'), 2000);
  await pass(29000);
  document.dispatchEvent(new Event('visibilitychange'));
  await pass(999);
  assert.equal(asked.n, 1);
  await pass(8000);
  assert.equal(asked.n, 2);
  stop();
});

test('those that hear share one stream: they look at once, after a change, and 30 s after the last look; and as without it while it is silent', async () => {
  /** @type {ReadableStreamDefaultController[]} */
  const streams = [];
  const looks = { a: 0, b: 0 };
  globalThis.fetch = /** @type {any} */ (async (/** @type {string} */ url, /** @type {RequestInit} */ o) => {
    if (new Headers(o.headers).get('Accept') === 'text/event-stream') return new Response(new ReadableStream({ start: (c) => { streams.push(c); } }));
    return new Response('{}');
  });
  const say = (/** @type {object} */ change) => streams[0].enqueue(new TextEncoder().encode(`event: changed\ndata: ${JSON.stringify(change)}\n\n`));
  const idle = async (/** @type {number} */ seconds) => {
    for (let s = 0; s < seconds; s += 5) {
      await pass(5000);
      say({ at: '', idle: true });
      await pass(0);
    }
  };
  const stops = [poll(async () => { looks.a++; }, 3000, true), poll(async () => { looks.b++; return 12000; }, 3000, true)];
  await pass(0);
  assert.equal(streams.length, 1);
  say({ at: '' }); // the first message: what changed before the stream was there
  await pass(3000);
  assert.deepEqual(looks, { a: 2, b: 2 });
  await idle(10);
  assert.deepEqual(looks, { a: 2, b: 2 });
  await idle(15);
  assert.deepEqual(looks, { a: 2, b: 3 }, 'b says that an answer is good for 12 s');
  await idle(5);
  assert.equal(looks.a, 3, '30 s after the last look');
  say({ at: '' });
  await pass(3000);
  assert.equal(looks.a, 4, 'a change');
  for (let i = 0; i < 8; i++) await pass(3000);
  assert.ok(looks.a >= 8, `${looks.a} looks while the stream is silent`);
  for (const stop of stops) stop();
  await pass(1);
  const stop = poll(async () => {}, 3000, true);
  await pass(0);
  assert.equal(streams.length, 2, 'it was closed when none heard');
  stop();
});

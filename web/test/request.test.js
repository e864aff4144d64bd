import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

// The page's modules ask for the document's base and listen for events when they are loaded.
Object.assign(globalThis, { document: { baseURI: 'http://127.0.0.1:7411/it/ui/', querySelector: () => null, addEventListener: () => {} }, addEventListener: () => {} });
const { ascii, cli, curl, quoted, requestOf } = await import('../part/request.js');

const nasty = 'it\'s "quoted" $(echo a) `echo b` ${HOME} $HOME \\ \\\' \\n !! # ; & | > c\n\tsecond\r\nEOF\n\' \u202e\u200b\u001b[31m\u007f é 界 😀 %s @- --flag';

test('a word of a shell stands for its text', () => {
  for (const text of ['', 'plain', nasty, "'", "''", '\\', '-n', '*', '~', 'a b', '$(false)', '!x']) {
    assert.equal(execFileSync('bash', ['-c', `printf %s ${quoted(text)}`], { encoding: 'utf8' }), text);
  }
});

test('JSON of ASCII is the same JSON', () => {
  const json = JSON.stringify({ [nasty]: [nasty, '\ud800'] }, null, '\t');
  assert.match(ascii(json), /^[ -~]*$/);
  assert.deepEqual(JSON.parse(ascii(json)), JSON.parse(json));
});

test('a request is what an execution was asked for, with its digits', () => {
  const x = /** @type {any} */ ({ action: 'grade', version: 3, status: 'running', attempt: 1, id: 'ex_1', queue: 'gpu', labels: { of: "a's" }, timeout: '90s' });
  const r = requestOf(x, '{"n": 1.10}');
  assert.equal(r.body, '{"action": "grade@3", "input": {"n": 1.10}, "labels": {"of":"a\'s"}, "queue": "gpu", "timeout": "90s"}');
  assert.equal(cli(r.asked), `pawl run grade@3 --server http://127.0.0.1:7411/it --label 'of=a'\\''s' --queue gpu --timeout 90s --input '{"n": 1.10}'`);
  assert.match(requestOf({ ...x, key: 'k', key_limit: 2 }, undefined).body, /"concurrency": \{"key":"k","limit":2\}/);
});

const run = (/** @type {any} */ x) => cli(requestOf({ action: 'noop', ...x }, undefined).asked).split(' ').slice(5).join(' ');

test('a key, a rate and the cache are flags', () => {
  assert.equal(run({ key: "a key's=", key_limit: 2, fair_by: 'ann b', weight: 3 }), `--concurrency 'a key'\\''s==2' --fair-by 'ann b' --weight 3`);
  assert.equal(run({ rate: { key: 'mails', limit: 6, per: '1m0s', burst: 2, over: 'drop' }, no_cache: true }), '--rate mails=6/1m0s --burst 2 --over drop --no-cache');
});

test('when it starts, and what is kept, are flags', () => {
  assert.match(cli({ action: 'noop', not_before: '2099-01-01T00:00:00Z', cache: { ttl: '1h', key: '' }, concurrency: { key: 'k', limit: 1, when_full: 'cancel_new' } }),
    / --at 2099-01-01T00:00:00Z --concurrency k=1 --when-full cancel_new --cache 1h --cache-key ''$/);
  assert.match(cli({ action: 'noop', start_in: '5m' }), / --in 5m$/);
});

test('what pawl run has no flag for is named', () => {
  assert.throws(() => run({ priority: 1, retry: { max_attempts: 2 } }), /no flag for priority, retry$/);
  assert.throws(() => run({ queue_timeout: '1s', total_timeout: '1m' }), /no flag for queue_timeout, total_timeout$/);
  assert.throws(() => run({ key: 'ü', key_limit: 1 }), /--concurrency.*ASCII/);
});

test('a label that a flag would change has no command', () => {
  for (const v of ['a,b', 'a=b', '']) assert.match(cli({ action: 'noop', labels: { x: v } }), /--label/);
  for (const v of ['"a"', 'a=b,c', 'ü', '\n']) assert.throws(() => cli({ action: 'noop', labels: { x: v } }), /label/);
});

test('what is too long for an argument is the input of the command', () => {
  const command = curl('api/v1/executions', JSON.stringify({ text: nasty.repeat(2000) }));
  const body = execFileSync('bash', [], { input: `curl() { cat; }\n${command}\n`, encoding: 'utf8', maxBuffer: 1 << 24 });
  assert.deepEqual(JSON.parse(body), { text: nasty.repeat(2000) });
});

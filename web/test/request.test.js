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
  assert.equal(r.cli, `pawl run grade@3 --server http://127.0.0.1:7411/it --label 'of=a'\\''s' --queue gpu --timeout 90s --input '{"n": 1.10}'`);
  assert.equal(requestOf({ ...x, priority: 1 }, undefined).cli, '');
  assert.match(requestOf({ ...x, key: 'k', key_limit: 2 }, undefined).body, /"concurrency": \{"key":"k","limit":2\}/);
});

test('a label that a flag would change has no command', () => {
  assert.deepEqual(['a,b', 'a=b', ''].map((v) => cli({ action: 'noop', labels: { x: v } }) !== ''), [true, true, true]);
  assert.deepEqual(['"a"', 'a=b,c', 'ü', '\n'].map((v) => cli({ action: 'noop', labels: { x: v } })), ['', '', '', '']);
});

test('what is too long for an argument is the input of the command', () => {
  const command = curl('api/v1/executions', JSON.stringify({ text: nasty.repeat(2000) }));
  const body = execFileSync('bash', [], { input: `curl() { cat; }\n${command}\n`, encoding: 'utf8', maxBuffer: 1 << 24 });
  assert.deepEqual(JSON.parse(body), { text: nasty.repeat(2000) });
});

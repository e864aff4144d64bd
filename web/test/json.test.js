import test from 'node:test';
import assert from 'node:assert/strict';
import { gist, tokens } from '../part/json.js';
import { members } from '../part/members.js';

test('members are the text of their values', () => {
  const m = members('{"id": "x", "n": 12345678901234567890.10, "in": {"a": [1, "}]\\"", {}]}, "t" : true , "e":""}');
  assert.deepEqual({ ...m }, { id: '"x"', n: '12345678901234567890.10', in: '{"a": [1, "}]\\"", {}]}', t: 'true', e: '""' });
  assert.deepEqual({ ...members('[1]') }, {});
  assert.deepEqual({ ...members('{}') }, {});
  assert.equal(members('{"__proto__": 1}').__proto__, '1');
});

test('no digit is lost, and the layout is one of its own', () => {
  const text = tokens('{"a":[1.000000000000000000001,1e400,{}],"b":{"c":"x\\ny"}}').map((t) => t.text).join('');
  assert.equal(text, '{\n  "a": [\n    1.000000000000000000001,\n    1e400,\n    {}\n  ],\n  "b": {\n    "c": "x\\ny"\n  }\n}');
});

test('keys are told from texts', () => {
  assert.deepEqual(tokens('{"k":"v"}').filter((t) => t.cls && t.cls !== 'j-pun').map((t) => t.cls), ['j-key', 'j-str']);
});

test('what is cut off ends', () => {
  for (const s of ['{', '{"a', '{"a":', '[1,', '"', '{"a":[', ']', ':', '{"a" 1}']) {
    tokens(s);
    members(s.startsWith('{"a') ? s : '{}');
  }
});

test('many elements within many lists are not a hundred times as long', () => {
  const deep = '['.repeat(200) + '1,'.repeat(10000) + '1' + ']'.repeat(200);
  const text = tokens(deep).map((t) => t.text).join('');
  assert.ok(text.length < 40 * deep.length, `${text.length} characters of ${deep.length}`);
  assert.equal(text.replace(/\s/g, ''), deep);
});

test('a text is laid out as far as it is shown', () => {
  const part = tokens('[' + '1,'.repeat(1e6) + '1]', 1000).map((t) => t.text).join('');
  assert.ok(part.length >= 1000 && part.length < 1100, String(part.length));
});

test('a line about an object has the digits of its numbers', () => {
  assert.equal(gist('{"n": 12345678901234567890, "s": "a\\nb", "o": {"x": 1.00}}'), 'n: 12345678901234567890 · s: a␊b · o: {"x": 1.00}');
  assert.equal(gist('[1]'), '[1]');
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { Typed } from '../part/typed.js';

const encoded = (s) => new TextEncoder().encode(s);

/** A server that keeps what it is given by the rules of the API. lose: how many answers are lost; before: called before a send is taken. */
function server() {
  const s = { text: '', closed: false, lose: 0, refuse: null, before: () => {}, sends: [], pauses: [] };
  const given = () => ({ offset: encoded(s.text).length, closed: s.closed });
  const typed = new Typed({
    look: async () => given(),
    read: async () => encoded(s.text),
    send: async (text, at, last) => {
      s.sends.push([text, at, last]);
      s.before();
      if (s.refuse) throw Object.assign(new Error('refused'), { status: s.refuse });
      const all = Buffer.from(s.text);
      const piece = Buffer.from(text);
      const again = all.subarray(at, at + piece.length);
      if (at > all.length || !again.equals(piece.subarray(0, again.length)) || (s.closed && again.length < piece.length)) throw Object.assign(new Error('offset'), { status: 409 });
      s.text = Buffer.concat([all, piece.subarray(again.length)]).toString();
      s.closed ||= last;
      if (s.lose-- > 0) throw Object.assign(new Error('away'), { status: 0 });
      return given();
    },
    pause: async (ms) => { s.pauses.push(ms); },
  }, () => {});
  return { s, typed };
}

test('what is sent again after a lost answer is taken once', async () => {
  const { s, typed } = server();
  s.lose = 3;
  await Promise.all([typed.type('ä\n'), typed.type('b\n'), typed.type('', true)]);
  assert.equal(s.text, 'ä\nb\n');
  assert.equal(s.closed, true);
  assert.deepEqual(s.sends, [['ä\n', 0, false], ['ä\n', 0, false], ['ä\n', 0, false], ['ä\n', 0, false], ['b\n', 3, false], ['', 5, true]]);
  assert.deepEqual([typed.offset, typed.closed, typed.error, typed.waiting.length], [5, true, null, 0]);
  assert.deepEqual(s.pauses, [500, 1000, 2000]);
});

test('a page that is loaded again goes on behind what was sent', async () => {
  const { s, typed } = server();
  s.text = 'one\ntw';
  await typed.look();
  assert.deepEqual(typed.rows(9), [{ text: 'one', waits: false }, { text: 'tw', waits: false }]);
  await typed.type('o\n');
  assert.equal(s.text, 'one\ntwo\n');
  assert.deepEqual(typed.rows(1), [{ text: 'two', waits: false }]);
});

test('what another client sends first is not written over, and ours goes behind it when that is asked for', async () => {
  const { s, typed } = server();
  await typed.look();
  s.text = 'theirs\n';
  await typed.type('ours\n');
  assert.equal(s.text, 'theirs\n');
  assert.equal(typed.refused, true);
  assert.deepEqual(typed.rows(9), [{ text: 'ours', waits: true }]);
  await typed.type('more\n');
  assert.equal(s.sends.length, 1, 'nothing overtakes what was refused');
  await typed.again();
  assert.equal(s.text, 'theirs\nours\nmore\n');
  assert.deepEqual(typed.rows(9).map((r) => r.text), ['theirs', 'ours', 'more']);
});

test('what was refused can be given up', async () => {
  const { s, typed } = server();
  s.refuse = 413;
  await typed.type('a\n');
  assert.ok(typed.error);
  typed.drop();
  s.refuse = null;
  await typed.type('b\n');
  assert.equal(s.text, 'b\n');
});

test('a look while a send is under way counts nothing twice', async () => {
  const { s, typed } = server();
  await typed.look();
  s.before = () => { void typed.look(); };
  await typed.type('a\n');
  await typed.look();
  assert.deepEqual([typed.offset, typed.text], [2, 'a\n']);
});

test('long input is not kept whole', async () => {
  const { s, typed } = server();
  s.text = 'x'.repeat(70000);
  await typed.look();
  assert.deepEqual([typed.offset, typed.left, typed.text], [70000, 70000, '']);
  await typed.type('y'.repeat(64001));
  assert.deepEqual([typed.offset, typed.text.length, typed.left], [134001, 32000, 102001]);
});

import test from 'node:test';
import assert from 'node:assert/strict';
import { pieces, noStyle, stripped } from '../part/ansi.js';

const esc = '\u001b';

test('colours become classes, and the text stays', () => {
  const s = noStyle();
  assert.deepEqual(pieces(`a${esc}[1;31mb${esc}[0mc`, s), [{ text: 'a', cls: '' }, { text: 'b', cls: 's-bold f1' }, { text: 'c', cls: '' }]);
});

test('a style goes on to the next line', () => {
  const s = noStyle();
  pieces(`${esc}[32mgreen`, s);
  assert.equal(pieces('still', s)[0].cls, 'f2');
});

test('256 and true colours are numbers only', () => {
  assert.equal(pieces(`${esc}[38;5;196mx`, noStyle())[0].color, 'rgb(255 0 0)');
  assert.equal(pieces(`${esc}[48;2;1;2;3mx`, noStyle())[0].background, 'rgb(1 2 3)');
  assert.deepEqual(pieces(`${esc}[38;2;999;0;0mx`, noStyle()), [{ text: 'x', cls: '' }]);
  assert.deepEqual(pieces(`${esc}[38;2;1;url(x)mx`, noStyle()).map((p) => p.color), [undefined]);
});

test('everything but colours is dropped', () => {
  for (const hostile of [`${esc}]0;title\u0007`, `${esc}]8;;\u0007`, `${esc}]9;8;;x\u0007`, `${esc}[2J`, `${esc}[10A`, `${esc}[?25l`, `${esc}P1;2|x${esc}\\`, '\u009b31m', '\u009d0;t\u009c', `${esc}c`, `${esc}(B`]) {
    assert.equal(pieces(`a${hostile}b`, noStyle()).map((p) => p.text).join(''), 'ab', JSON.stringify(hostile));
    assert.equal(stripped(`a${hostile}b`), 'ab');
  }
});

test('a hyperlink is its text and then its address, as text', () => {
  const link = (/** @type {string} */ to, /** @type {string} */ text) => `${esc}]8;id=1;${to}${esc}\\${text}${esc}]8;;\u0007`;
  const shown = (/** @type {string} */ line) => pieces(line, noStyle()).map((p) => p.text).join('');
  assert.equal(shown(`a ${link('https://evil.example/', 'https://bank.example/')} b`), 'a https://bank.example/ [https://evil.example/] b');
  assert.equal(shown(link('javascript:alert(1)', `x${esc}[31my`)), 'xy [javascript:alert(1)]');
  assert.equal(shown(link('https://a.example/', 'https://a.example/')), 'https://a.example/');
  assert.equal(shown(`${esc}]8;;https://a.example/\u0007never ended`), 'never ended [https://a.example/]');
  assert.equal(shown(`\u009d8;;one\u009cx\u009d8;;two\u009cy`), 'x [one]y [two]');
  assert.equal(shown(link('a\u202eb', 'x')), 'x [a⟨U+202E⟩b]');
  assert.ok(shown(link('x'.repeat(4000), 'y')).length < 250);
  assert.equal(stripped(link('https://a.example/', 'x')), 'x');
});

test('a line of hyperlinks has a bounded number of pieces', () => {
  assert.ok(pieces(`${esc}]8;;a\u0007x${esc}]8;;\u0007`.repeat(5000), noStyle()).length <= 503);
});

test('controls and marks of direction are seen', () => {
  assert.equal(pieces('a\u0000b\u202ec\u200bd\u0007', noStyle()).map((p) => p.text).join(''), 'a␀b⟨U+202E⟩c⟨U+200B⟩d␇');
});

test('a line of colours has a bounded number of pieces', () => {
  assert.ok(pieces(`${esc}[31mx${esc}[0my`.repeat(5000), noStyle()).length <= 501);
});

test('a long run of parameters takes no long time', () => {
  const begun = process.cpuUsage().user;
  pieces(`${esc}[` + '1;'.repeat(100000) + 'x', noStyle());
  pieces(`${esc}]` + 'x'.repeat(200000), noStyle());
  pieces(esc.repeat(20000), noStyle());
  assert.ok(process.cpuUsage().user - begun < 2e6);
});

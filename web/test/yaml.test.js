import test from 'node:test';
import assert from 'node:assert/strict';
import { yaml } from '../part/yaml.js';

test('members, items and texts are written as people write them', () => {
  assert.equal(yaml('{"name":"hello","tasks":{"greet":{"needs":["a","b"],"with":{"source":"import sys\\n\\nprint(1)\\n","lists":[[1,2],[]],"of":[{"a":1,"b":{"c":"x"}}]}}}}'), `name: hello
tasks:
  greet:
    needs:
      - a
      - b
    with:
      source: |
        import sys

        print(1)
      lists:
        - - 1
          - 2
        - []
      of:
        - a: 1
          b:
            c: x
`);
});

test('numbers keep their digits, and words that are no texts elsewhere are quoted', () => {
  assert.equal(yaml('{"a": 12345678901234567890, "b": 1.50, "c": "12", "d": "yes", "e": null, "f": "", "on": "a b", "g": {}, "h": "2020-01-01"}'),
    'a: 12345678901234567890\nb: 1.50\nc: "12"\nd: "yes"\ne: null\nf: ""\n"on": a b\ng: {}\nh: "2020-01-01"\n');
});

test('the ends of texts of several lines are kept', () => {
  assert.equal(yaml('["a\\nb", "a\\nb\\n", "a\\nb\\n\\n", " a\\nb", "a\\n  "]'), '- |-\n  a\n  b\n- |\n  a\n  b\n- |+\n  a\n  b\n\n- " a\\nb"\n- "a\\n  "\n');
});

test('what is invisible, or what YAML cannot hold, is escaped', () => {
  assert.equal(yaml(JSON.stringify(['\u202e x', 'a\u0000b', '\u{e0041}', '\u2028', '\u007f', 'say "hi" it\'s', '# no', '- x', 'a: b', '*a', '${{ x }}'])),
    '- "\\u202e x"\n- "a\\u0000b"\n- "\\U000e0041"\n- "\\u2028"\n- "\\u007f"\n- \'say "hi" it\'\'s\'\n- "# no"\n- "- x"\n- "a: b"\n- "*a"\n- "${{ x }}"\n');
});

test('a value that is not an object is written too', () => {
  assert.deepEqual(['"a"', '1', '[]', 'null'].map(yaml), ['a\n', '1\n', '[]\n', 'null\n']);
});

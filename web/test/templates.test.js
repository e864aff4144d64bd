import test from 'node:test';
import assert from 'node:assert/strict';
import { html } from '../vendor/preact.js';

// htm keeps the nodes of the parts of a template without values, and returns the same ones each time. A node knows its parent: such a part would keep the first table
// that it was drawn in, with all its rows, for as long as the page is open.
test('a template keeps no node of what was drawn before', () => {
  const drawn = () => html`<div><p>the same each time</p>${1}</div>`;
  const part = () => drawn().props.children[0];
  assert.equal(part().type, 'p');
  assert.notEqual(part(), part());
});

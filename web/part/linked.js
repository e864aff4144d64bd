// Sentences of the server.
import { html } from '../vendor/preact.js';
import { plain, sentence } from '../app/text.js';

const id = /\b((?:ex|iq|sg)_[0-9a-z]{20,})\b/;

/** A sentence of the server with its ids as links. @param {string} text */
export const linked = (text) => sentence(text).split(id).map((part, i) => (i % 2 ? html`
  <a class="mono" href=${`${part.startsWith('iq') ? 'questions' : part.startsWith('sg') ? 'signals' : 'executions'}/${part}`}>
    ${part}
  </a>` : plain(part)));

// A program's output with its colours.
import { html } from '../vendor/preact.js';
import { plain } from '../app/text.js';
import { noStyle, pieces, stripped } from './ansi.js';

export const mostPieces = 1500; // of what is drawn at once, each an element of its own; what follows has no colours

/** Pieces of a line as they are drawn. @param {import('./ansi.js').Piece[]} all */
export const coloured = (all) => all.map((p) => (p.cls || p.color || p.background ? html`
  <span class=${p.cls} style=${{ color: p.color || '', backgroundColor: p.background || '' }}>${p.text}</span>` : p.text));

/** @param {string} text */
export function written(text) {
  if (!text.includes('\u001b')) return plain(text);
  const s = noStyle();
  const out = [];
  let at = 0;
  for (let left = mostPieces; left > 0 && at < text.length;) {
    const end = (text.indexOf('\n', at) + 1 || text.length + 1) - 1;
    const line = pieces(text.slice(at, end), s, left);
    left -= line.length + 1;
    out.push(coloured(line), text.slice(end, end + 1));
    at = end + 1;
  }
  if (at < text.length) out.push(plain(stripped(text.slice(at))));
  return out;
}

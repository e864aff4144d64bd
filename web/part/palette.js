// The results of the search over all screens for a text.

/** @typedef {{name: string, hint: string, keys?: string, to?: string, act?: () => void}} Choice to: an address of the page; act: what is done in its place */

/** @type {Record<string, {path: string, what: string}>} */
const ids = { ex: { path: 'executions', what: 'Execution' }, sg: { path: 'signals', what: 'Signal' }, iq: { path: 'questions', what: 'Question' } };

const most = 12; // that are listed

/**
 * The matches of a text, the best first. An id, a label and an action are offered unchecked.
 * @param {string} text
 * @param {Choice[]} known orders and screens, which are offered without a text too
 * @param {Choice[]} named definitions and views, which are offered for their names only
 * @returns {Choice[]}
 */
export function choices(text, known, named) {
  const t = text.trim();
  if (t === '') return known.slice(0, most);
  const id = /^(ex|sg|iq)_[0-9a-z]+$/i.exec(t);
  if (id) {
    const at = ids[id[1].toLowerCase()];
    return [{ name: `${at.what} ${t}`, hint: 'Open', to: `${at.path}/${encodeURIComponent(t)}` }];
  }
  const words = t.toLowerCase().split(/\s+/);
  const fits = (/** @type {Choice} */ c) => words.every((w) => c.name.toLowerCase().includes(w));
  const begins = (/** @type {Choice} */ c) => Number(!c.name.toLowerCase().startsWith(words[0]));
  const found = [...known, ...named].filter(fits).sort((a, b) => begins(a) - begins(b));
  const label = /^[^=\s]+=\S/.test(t) && !/[<>!]/.test(t);
  const where = (/** @type {string} */ k) => `executions?${k}=${encodeURIComponent(t)}`;
  const guess = label ? { name: `Executions with the label ${t}`, hint: 'Filter', to: where('label') }
    : words.length > 1 ? { name: `Executions where ${t}`, hint: 'Filter', to: where('where') }
      : { name: `Executions of the action ${t}`, hint: 'Filter', to: where('action') };
  return [...found.slice(0, most - 1), guess];
}

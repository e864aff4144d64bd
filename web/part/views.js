// The stored form of saved views: names and queries.

/** @typedef {{name: string, query: string}} View */

const most = 30;

/** A query in one order, so that the same filters are the same view. @param {URLSearchParams|string} q */
export function ordered(q) {
  const p = new URLSearchParams(q);
  p.sort();
  return p.toString();
}

/** The views in a stored text; invalid ones are left out. @param {string|null} text @returns {View[]} */
export function viewsOf(text) {
  try {
    const all = JSON.parse(text || '[]');
    return (Array.isArray(all) ? all : []).filter((v) => v && typeof v.name === 'string' && v.name !== '' && typeof v.query === 'string').slice(0, most);
  } catch {
    return [];
  }
}

/** The views with one more, in place of that of the same name. @param {View[]} all @param {View} v */
export const withView = (all, v) => [...all.filter((o) => o.name !== v.name), v].slice(-most);

// The address is the view: path, filters, tab and selection are read from it and written to it, and nowhere else.
import { signal } from '../vendor/preact.js';
import { base } from './api.js';

// The document's base is relative to the first address. It is fixed once, because the address changes with every navigation.
const element = document.querySelector('base');
if (element) element.href = base;

const read = () => {
  const at = new URL(location.href);
  const rest = at.href.startsWith(base) ? at.pathname.slice(new URL(base).pathname.length) : '';
  return { parts: rest.split('/').filter(Boolean).map(decode), query: at.searchParams, hash: new URLSearchParams(at.hash.slice(1)) };
};

/** @param {string} s */
function decode(s) {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

/** The current view: the parts of the path beneath the page's root, the query, and the text after the #. */
export const route = signal(read());

/**
 * @param {string} to relative to the page's root
 * @param {{replace?: boolean}} [o]
 */
export function go(to, o = {}) {
  const url = new URL(to, base).href;
  if (o.replace) history.replaceState(null, '', url);
  else if (url !== location.href) history.pushState(null, '', url);
  const before = route.value.parts.join('/');
  route.value = read();
  if (!o.replace && before !== route.value.parts.join('/')) scrollTo(0, 0);
}

/** The address with some of its query changed; undefined and '' remove a parameter. @param {Record<string, string|string[]|undefined>} change */
export function withQuery(change) {
  const q = new URLSearchParams(route.value.query);
  for (const [k, v] of Object.entries(change)) {
    q.delete(k);
    for (const one of Array.isArray(v) ? v : [v]) if (one) q.append(k, one);
  }
  const s = q.toString();
  return route.value.parts.map(encodeURIComponent).join('/') + (s ? '?' + s : '');
}

addEventListener('popstate', () => { route.value = read(); });

// Links within the page are followed without reloading it.
document.addEventListener('click', (e) => {
  const a = e.target instanceof Element ? e.target.closest('a') : null;
  if (!(a instanceof HTMLAnchorElement) || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.download || a.target) return;
  if (!a.href.startsWith(base)) return;
  e.preventDefault();
  go(a.href);
});

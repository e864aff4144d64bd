// Idempotency keys: a request that is repeated with its key takes effect once.
export const newKey = () => 'ui-' + [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');

/**
 * The key of the next try: a refused submission is changed first, and is then another one. After no response, or one of 500 and more, which may come
 * from a proxy that had forwarded the request, the first try may have taken effect.
 * @param {string} key @param {unknown} error
 */
export const nextKey = (key, error) => (/** @type {any} */ (error)?.status >= 400 && /** @type {any} */ (error).status < 500 ? newKey() : key);

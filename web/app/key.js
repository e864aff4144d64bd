// Idempotency keys: a request that is sent again under its key takes effect once.
export const newKey = () => 'ui-' + [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');

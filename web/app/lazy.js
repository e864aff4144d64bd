// Parts of the page that are loaded when they are first shown, so that the first load stays small.
import { h, useEffect, useState } from '../vendor/preact.js';
import { trouble, loading } from '../part/kit.js';

/**
 * @param {() => Promise<(p: any) => any>} fetched
 * @param {() => any} [meanwhile] what is shown until then
 */
export function lazy(fetched, meanwhile = loading) {
  /** @type {((p: any) => any)|null} */
  let view = null;
  return function Lazy(/** @type {any} */ p) {
    const [, draw] = useState(0);
    const [failed, fail] = useState(false);
    const drawn = view; // it may come between this drawing and the effect
    useEffect(() => {
      if (!drawn) fetched().then((v) => { view = v; draw(1); }, () => fail(true));
    }, []);
    if (failed) return trouble(new Error('This part of the page could not be fetched: the server is away, or has another version now. Load the page again.'));
    return view ? h(view, p) : meanwhile();
  };
}

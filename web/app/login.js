// The login: instead of the page, or over a screen that stays.
import { html, h, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { logIn } from './api.js';
import { trouble } from '../part/kit.js';

export function Login() {
  const [text, setText] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const enter = async (/** @type {Event} */ e) => {
    e.preventDefault();
    await logIn(text.trim()).catch(setError);
  };
  const open = location.protocol !== 'https:' && !/^(localhost|127\.|\[::1\])/.test(location.hostname);
  return html`
    <main class="login">
      <h1>Pawl asks for a token</h1>
      <form class="tight" onSubmit=${enter}>
        <div class="field">
          <label for="token">Token of this server</label>
          <input id="token" type="password" autocomplete="current-password" value=${text}
              onInput=${(/** @type {any} */ e) => setText(e.target.value)} autofocus />
        </div>
        <p class="hint">The browser stays logged in for 12 hours. The token itself is not kept.</p>
        ${open ? html`<p class="note late">The connection is not encrypted: others on the network can read the token.</p>` : null}
        ${trouble(error)}
        <div><button class="primary" type="submit" disabled=${text.trim() === ''}>Open</button></div>
      </form>
    </main>`;
}

/** The login over a screen that keeps its state and typed text: a session ends after 12 hours. */
export function LoginAgain() {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const show = () => { if (ref.current && !ref.current.open) ref.current.showModal(); };
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    show();
    return () => {
      ref.current?.close();
      setTimeout(() => before?.focus(), 0); // once the screen is seen again
    };
  }, []);
  // Escape would also close a dialog of the screen: browsers close dialogs opened without a click together. Without closedby, a closed one opens again.
  return html`
    <dialog ref=${ref} class="again" aria-label="Login" closedby="none" onCancel=${(/** @type {Event} */ e) => e.preventDefault()}
        onClose=${show}>
      ${h(Login, {})}
    </dialog>`;
}

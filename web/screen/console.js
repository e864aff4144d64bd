// The input of an interactive execution. The program's output is in the log above it.
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { getJSON, post, request } from '../app/api.js';
import { poll } from '../app/stream.js';
import { route, go } from '../app/router.js';
import { line, bytes } from '../app/text.js';
import { open } from '../part/status.js';
import { trouble } from '../part/kit.js';
import { Typed } from '../part/typed.js';

const turn = signal(0);

/** @type {{id: string, typed: Typed}|null} */
let latest = null;

/** Typed input outlives its screen: pending input is also sent while another tab of the screen is shown. @param {string} id */
function typedFor(id) {
  if (latest?.id === id) return latest.typed;
  const path = `api/v1/executions/${id}/stdin`;
  const typed = new Typed({
    look: () => getJSON(path),
    read: async () => new Uint8Array(await (await request(`${path}/bytes`, { accept: '*/*' })).arrayBuffer()),
    send: (text, offset, last) => post(`${path}?offset=${offset}${last ? '&eof=true' : ''}`, text, { 'Content-Type': 'application/octet-stream' }),
    pause: (ms) => new Promise((done) => { setTimeout(done, ms); }),
  }, () => { turn.value++; });
  latest = { id, typed };
  return typed;
}

/** @param {{x: import('../types').Execution}} p */
export function Console({ x }) {
  const typed = typedFor(x.id);
  void turn.value; // redraws after every change of it
  const going = open(x.status);
  const [text, setText] = useState('');
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const list = useRef(/** @type {HTMLDivElement|null} */ (null));
  const field = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const over = useRef(/** @type {HTMLParagraphElement|null} */ (null));
  const shift = useRef(false);
  const held = !!box.current?.contains(document.activeElement);

  useEffect(() => poll(async () => {
    await typed.look();
    return going && !typed.closed;
  }, 2000), [typed, going]);
  useEffect(() => {
    if (!going) return;
    // The screen shows its first tab where the address names none, and which one that is changes with the end: the console stays.
    if (!route.value.parts[2]) go(`executions/${x.id}/logs${location.search}`, { replace: true });
    if (document.activeElement === document.body) field.current?.focus({ preventScroll: true });
  }, []);
  useLayoutEffect(() => {
    if (!going && held) over.current?.focus();
  }, [going]);
  const rows = typed.rows(200);
  useLayoutEffect(() => { if (list.current) list.current.scrollTop = list.current.scrollHeight; }, [rows.length]);

  const ending = typed.closed || typed.waiting.some((w) => w.last);
  const send = (/** @type {boolean} */ last) => {
    if (ending) return;
    const written = field.current?.value || '';
    void typed.type(last && written === '' ? '' : written + '\n', last);
    setText('');
    field.current?.focus();
  };
  // Enter comes as text that is about to be inserted, also from keyboards on a screen; while an input method composes, it does not.
  const inserting = (/** @type {InputEvent} */ e) => {
    if (shift.current || (e.inputType !== 'insertLineBreak' && e.inputType !== 'insertParagraph')) return;
    e.preventDefault();
    send(false);
  };
  const pressed = (/** @type {KeyboardEvent} */ e) => {
    shift.current = e.shiftKey;
    if (e.key === 'Escape') field.current?.blur();
    if (e.key !== 'd' || !e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    if (text === '') send(true);
  };
  const unread = typed.waiting.length > 0 && !going;
  return html`
    <div class="console" ref=${box}>
      ${rows.length > 0 || typed.left > 0 ? html`
        <div class="sent log" ref=${list} tabindex="0" role="group" aria-label="What was sent">
          ${typed.left > 0 ? html`<p class="quiet">${bytes(typed.left)} before it</p>` : null}
          <ol>
            ${rows.map((r) => html`
              <li>
                <span class="n" aria-hidden="true">›</span>
                <span class="user">${line(r.text, 500)}</span>
                ${r.waits ? html`<span class="quiet"> ${going && !typed.refused ? 'sending …' : 'not sent'}</span>` : null}
              </li>`)}
          </ol>
        </div>` : null}
      <div class="entry">
        ${trouble(typed.error)}
        ${typed.refused ? html`
          <div class="row">
            ${going && !typed.closed ? html`<button type="button" onClick=${() => void typed.again()}>Send it again</button>` : null}
            <button type="button" onClick=${() => typed.drop()}>Discard it</button>
          </div>` : null}
        ${!going
          ? html`
            <p ref=${over} tabindex="-1" class="muted">
              The execution has ended and reads nothing more. ${typed.offset > 0 ? `${bytes(typed.offset)} were sent.` : 'Nothing was sent.'}
              ${unread ? ' The last of it came too late.' : ''}
            </p>`
          : html`
            ${x.status === 'running' ? null : html`
              <p class="note run">
                It does not run ${x.started_at ? 'at the moment' : 'yet'}
                . What you send is kept, and it reads all of it once it runs. <a href=${`executions/${x.id}/why`}>
                  What it waits for
                </a>
              </p>`}
            <form onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); send(false); }}>
              <label for="console-line">Input</label>
              <span class="small muted num" role="status">${bytes(typed.offset)} sent</span>
              <textarea id="console-line" ref=${field} rows=${Math.min(6, text.split('\n').length)} value=${text} readOnly=${ending}
                  spellcheck=${false} autocapitalize="off" autocomplete="off" enterkeyhint="send" aria-describedby="console-hint"
                  onInput=${(/** @type {any} */ e) => setText(e.target.value)} onKeyDown=${pressed} onbeforeinput=${inserting}></textarea>
              <button type="submit" disabled=${ending}>Send</button>
              <button type="button" disabled=${ending} onClick=${() => send(true)}>End of input</button>
            </form>
            <p class="hint" id="console-hint">
              ${ending
                ? 'The input has ended: the program reads an end of file behind what was sent.'
                : html`
                  <span class="long">
                    <kbd>Enter</kbd> sends the line, <kbd>Shift</kbd> <kbd>Enter</kbd> begins another one, <kbd>Ctrl</kbd> <kbd>
                      D
                    </kbd> in the empty line ends the input.
                  </span>`}
            </p>`}
      </div>
    </div>`;
}

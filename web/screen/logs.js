// What an execution writes, line by line. The rows have one height, and only those in view are in the document.
import { html, h, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { follow } from '../app/stream.js';
import { route, go, withQuery } from '../app/router.js';
import { download, getJSON } from '../app/api.js';
import { number, count, bytes } from '../app/text.js';
import { Lines, drawn } from '../part/lines.js';
import { coloured, mostPieces } from '../part/written.js';
import { open } from '../part/status.js';
import { trouble, empty } from '../part/kit.js';
import { interactive } from './order.js';
import { lazy } from '../app/lazy.js';

const height = 18;
const tallest = 8e6; // pixels; browsers clamp what is taller
const spare = 20; // rows drawn beyond what is in view
const tail = 192e3; // bytes that are asked for at first of what was written before
const longer = 4e6; // and where more is asked for: as many as the page keeps

/** @param {string} base64 */
const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** The rows of the lines in view. @param {import('../part/lines.js').Line[]} lines @param {number} top of the first @param {number} first its number in all that came */
function rowsOf(lines, top, first) {
  let left = mostPieces;
  return lines.map((l, i) => {
    const d = drawn(l, left);
    left -= d.pieces.length;
    return html`<div class=${`logrow ${l.stream} ${l.note ? 'note-row' : ''}`} key=${first + i} style=${{ top: `${top + i * height}px` }}>
    <span class="n">${l.no || ''}</span><span>${coloured(d.pieces)}${d.cut ? html`<span class="quiet"> … ${number(d.cut)} characters more</span>` : null}</span></div>`;
  });
}

const Found = lazy(() => import('./logsearch.js').then((m) => m.Found));
const Console = lazy(() => import('./console.js').then((m) => m.Console), () => null);

/** The field for what is searched. The address keeps it. */
function Search() {
  const q = route.value.query;
  const search = (/** @type {any} */ e) => {
    e.preventDefault();
    const f = e.target.elements;
    go(withQuery({ find: f.find.value || undefined, regexp: f.find.value && f.regexp.checked ? 'true' : undefined }), { replace: true });
  };
  return html`<form class="search" role="search" aria-label="Search what it wrote" onSubmit=${search}>
    <input name="find" aria-label="Find in all that it wrote" placeholder="Find in all of it" defaultValue=${q.get('find') || ''} spellcheck=${false} autocomplete="off" maxlength="1000" />
    <label class="check small"><input type="checkbox" name="regexp" defaultChecked=${q.get('regexp') === 'true'} />Regular expression</label>
    <button type="submit" class="plain">Find</button></form>`;
}

/** @param {import('./execution.js').Shown} p */
export function Logs({ x, moment }) {
  const stream = route.value.query.get('stream') || '';
  const attempt = route.value.query.get('attempt') || '';
  const find = route.value.query.get('find') || '';
  const regexp = route.value.query.get('regexp') === 'true';
  const lines = useRef(new Lines());
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const [, draw] = useState(0);
  const [following, setFollowing] = useState(true);
  const atEnd = useRef(true);
  const put = useRef({ box: /** @type {HTMLDivElement|null} */ (null), top: 0 }); // where the page has scrolled to
  const gone = useRef(0); // lines that had been dropped when the page was drawn last
  const [over, setOver] = useState(false);
  const [cut, setCut] = useState(false); // what was written before the first line is not here
  const [more, setMore] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [view, setView] = useState({ top: 0, height: 600 });

  useEffect(() => {
    const kept = (lines.current = new Lines());
    let frame = 0;
    let last = 0;
    setOver(false);
    setCut(false);
    setError(null);
    const soon = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw((n) => n + 1); }); };
    const q = new URLSearchParams({ tail: String(more ? longer : tail) });
    if (stream) q.set('stream', stream);
    if (attempt) q.set('attempt', attempt);
    const stop = follow(`api/v1/executions/${x.id}/logs?${q}`, (event, data) => {
      if (event === 'log') {
        if (last === 0 && data.offset > 0) {
          kept.unnumbered();
          setCut(true);
          kept.note('What was written before is left out here: download the stream to read it');
        }
        if (data.attempt !== last && last !== 0) kept.note(`Attempt ${data.attempt}`);
        last = data.attempt;
        kept.add(data.stream, data.data ? bytesOf(data.data) : data.text || '');
      }
      if (event === 'end') setOver(true);
      soon();
    }, { failed: setError });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [x.id, stream, attempt, more]);

  // How much there is to download: known when it is opened, and again when all has been written.
  const [sizes, setSizes] = useState(/** @type {import('../types').LogStream[]} */ ([]));
  useEffect(() => {
    let mine = true;
    getJSON(`api/v1/executions/${x.id}/logs/summary`).then((l) => { if (mine) setSizes(l.streams); }, () => {});
    return () => { mine = false; };
  }, [x.id, x.attempt, over]);

  const all = lines.current.all;
  const full = all.length * height;
  const scale = Math.min(1, tallest / Math.max(full, 1));

  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    if (b.clientHeight !== view.height) setView((v) => ({ ...v, height: b.clientHeight }));
    const fewer = lines.current.dropped - gone.current;
    gone.current = lines.current.dropped;
    if (!following || !atEnd.current) {
      if (fewer <= 0) return;
      b.scrollTop = view.top - fewer * height * scale; // what is read stays where it is
      scrolled();
      return;
    }
    // Lines may come after somebody has scrolled up and before the browser says so: they do not take the view back.
    const from = put.current.box === b ? Math.min(put.current.top, b.scrollHeight - b.clientHeight) : 0;
    if (b.scrollTop < from - 2 * height) return;
    b.scrollTop = b.scrollHeight;
    put.current = { box: b, top: b.scrollTop };
  });

  const scrolled = () => {
    const b = box.current;
    if (!b) return;
    atEnd.current = b.scrollTop + b.clientHeight >= b.scrollHeight - 2 * height;
    setFollowing(atEnd.current);
    setView({ top: b.scrollTop, height: b.clientHeight });
  };
  const toEnd = () => {
    atEnd.current = true;
    setFollowing(true);
    put.current.box = null;
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };

  const first = Math.max(0, Math.floor(view.top / scale / height) - spare);
  const shown = all.slice(first, first + Math.ceil(view.height / height) + 2 * spare);
  const offset = view.top - (view.top / scale - first * height); // where the first row stands in the scaled plane
  const raw = (/** @type {string} */ s) => download(`api/v1/executions/${x.id}/logs?stream=${s}&offset=0${attempt ? `&attempt=${attempt}` : ''}`, `${x.id}-${s}.txt`);
  const sized = (/** @type {string} */ s) => sizes.find((o) => o.stream === s && o.attempt === (attempt ? Number(attempt) : x.attempt))?.bytes;
  const attempts = Array.from({ length: Math.min(x.attempt, 50) }, (_, i) => String(x.attempt - i));
  const typed = interactive(x) && !moment;
  return html`<section class="panel">
    <div class="logbar">
      ${typed ? html`<h2>Console</h2>` : null}
      <select aria-label="Stream" value=${stream} onChange=${(/** @type {any} */ e) => go(withQuery({ stream: e.target.value }), { replace: true })}>
        <option value="">All streams</option><option value="stdout">stdout</option><option value="stderr">stderr</option><option value="log">log</option></select>
      ${x.attempt > 1 ? html`<select aria-label="Attempt" value=${attempt} onChange=${(/** @type {any} */ e) => go(withQuery({ attempt: e.target.value }), { replace: true })}>
        <option value="">All attempts</option>${attempts.map((a) => html`<option value=${a}>Attempt ${a}</option>`)}</select>` : null}
      <span class="muted small num" role="status">${count(all.length, 'line')}${over ? '' : ', following'}</span>
      ${cut && !more ? html`<button type="button" class="plain" onClick=${() => setMore(true)}>Up to 4 MB</button>` : null}
      <span class="spacer"></span>
      ${following ? null : html`<button type="button" class="plain" aria-keyshortcuts="f" onClick=${toEnd}>To the end</button>`}
      ${['stdout', 'stderr'].map((s) => html`<button type="button" class="plain download" onClick=${() => raw(s)}>Download ${s}${sized(s) ? html` <span class="muted small num">${bytes(sized(s) || 0)}</span>` : null}</button>`)}
    </div>
    ${h(Search, {})}
    ${find ? h(Found, { key: JSON.stringify([x.id, find, regexp, stream, attempt]), id: x.id, text: find, regexp, stream, attempt }) : null}
    ${error ? trouble(error) : null}
    ${lines.current.dropped > 0 ? html`<p class="note small">${count(lines.current.dropped, 'earlier line')} left out here: download the stream to read them.</p>` : null}
    ${all.length === 0 ? empty(over || !open(x.status) ? 'It wrote nothing' : 'Nothing written yet', html`<p>${over ? 'Neither stream has a byte.' : 'What it writes appears here at once.'}</p>`)
      : html`<div class="logview log" style=${{ '--full': `${Math.ceil(full * scale) + height}px` }} ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label="What it wrote">
        <div style=${{ height: `${Math.ceil(full * scale)}px` }}></div>
        ${rowsOf(shown, offset, lines.current.dropped + first)}</div>`}
    ${typed ? h(Console, { key: x.id, x }) : null}
  </section>`;
}

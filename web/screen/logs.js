// An execution's output, line by line. All rows have the same height, and only the visible ones are in the document.
import { html, h, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { follow } from '../app/stream.js';
import { route, go, withQuery } from '../app/router.js';
import { download, getJSON, query } from '../app/api.js';
import { line, number, count, bytes } from '../app/text.js';
import { Lines, broken, drawn, lineAt } from '../part/lines.js';
import { beside, pageOf } from '../part/logpages.js';
import { coloured, mostPieces } from '../part/written.js';
import { open } from '../part/status.js';
import { trouble, empty, copy } from '../part/kit.js';
import { interactive } from './order.js';
import { lazy } from '../app/lazy.js';

const height = 18;
const tallest = 8e6; // pixels; browsers clamp what is taller
const spare = 20; // rows drawn beyond what is in view
const tail = 192e3; // bytes of earlier output that are requested at first
const near = 5; // rows to an edge from which the next page is asked for

/** @typedef {import('../part/lines.js').Line} Line */
/** @typedef {import('../part/lines.js').Place} Place */

/** @param {string} base64 */
const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** @param {Lines} lines @param {import('../types').LogChunk} c */
const take = (lines, c) => lines.add(c.stream, c.data ? bytesOf(c.data) : c.text || '', c);

/** @param {Line} l @param {Place|null} p */
const has = (l, p) => p !== null && l.at === p.at && l.stream === p.stream && l.attempt === p.attempt;

/**
 * The rows of the lines in view.
 * @param {{lines: Line[], first: number, topOf: (i: number) => number, raw: boolean, marked: Line|undefined}} p first: the number of the first in all that came; topOf: where a line of them stands
 */
function rowsOf({ lines, first, topOf, raw, marked }) {
  let left = mostPieces;
  return lines.map((l, i) => {
    const d = drawn(l, left, raw);
    left -= d.pieces.length;
    return html`
      <div class=${`logrow ${l.stream} ${l.note ? 'note-row' : ''} ${l === marked ? 'at-line' : ''}`} key=${first + i}
          data-line=${first + i} style=${{ top: `${topOf(i)}px`, height: `${topOf(i + 1) - topOf(i)}px` }}>
        <span class="n">${l.no || ''}</span>
        <span>${coloured(d.pieces)}${d.cut ? html`<span class="quiet"> … ${number(d.cut)} characters more</span>` : null}</span>
      </div>`;
  });
}

/** The byte that the address names; without a stream or an attempt there it is the one that is shown, or else stdout and the first. @returns {Place|null} */
function placeOf() {
  const { query: q, hash } = route.value;
  const o = hash.get('o');
  if (!o || !/^\d{1,15}$/.test(o)) return null;
  return { stream: hash.get('stream') || q.get('stream') || 'stdout', attempt: Number(hash.get('attempt') || q.get('attempt') || 1), at: Number(o) };
}

/** The address of this view at a byte. @param {Place} p */
export function linkTo({ attempt, stream, at }) {
  const q = route.value.query;
  const hash = new URLSearchParams({ o: String(at) });
  if (stream !== (q.get('stream') || 'stdout')) hash.set('stream', stream);
  if (attempt !== Number(q.get('attempt') || 1)) hash.set('attempt', String(attempt));
  return `${withQuery({})}#${hash}`;
}

const Found = lazy(() => import('./logsearch.js').then((m) => m.Found));
const Console = lazy(() => import('./console.js').then((m) => m.Console), () => null);

/** The search field. The address holds its value. */
function Search() {
  const q = route.value.query;
  const search = (/** @type {any} */ e) => {
    e.preventDefault();
    const f = e.target.elements;
    go(withQuery({ find: f.find.value || undefined, regexp: f.find.value && f.regexp.checked ? 'true' : undefined }) + location.hash, { replace: true });
  };
  return html`
    <form class="search" role="search" aria-label="Search what it wrote" onSubmit=${search}>
      <input name="find" aria-label="Find in all that it wrote" placeholder="Find in all of it" defaultValue=${q.get('find') || ''}
          spellcheck=${false} autocomplete="off" maxlength="1000" />
      <label class="check small">
        <input type="checkbox" name="regexp" defaultChecked=${q.get('regexp') === 'true'} />Regular expression
      </label>
      <button type="submit" class="plain">Find</button>
    </form>`;
}

/** A switch that the address keeps, with the place in it. @param {string} name @param {string} word @param {boolean} on @param {string} title @param {() => void} [before] */
const toggle = (name, word, on, title, before) => html`
  <button type="button" class="toggle" aria-pressed=${on} title=${title}
      onClick=${() => {
  before?.();
  go(withQuery({ [name]: on ? undefined : 'true' }) + location.hash, { replace: true });
}}>
    ${word}
  </button>`;

/** @param {import('./execution.js').Shown} p */
export function Logs({ x, moment }) {
  const q = route.value.query;
  const stream = q.get('stream') || '';
  const attempt = q.get('attempt') || '';
  const find = q.get('find') || '';
  const regexp = q.get('regexp') === 'true';
  const wrap = q.get('wrap') === 'true';
  const raw = q.get('raw') === 'true';
  const place = placeOf();
  const of = JSON.stringify([x.id, stream, attempt]);
  const lines = useRef(new Lines());
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const [, draw] = useState(0);
  const [following, setFollowing] = useState(true);
  const atEnd = useRef(true);
  const put = useRef({ box: /** @type {HTMLDivElement|null} */ (null), top: 0 }); // where the page has scrolled to
  const [over, setOver] = useState(false);
  const [cut, setCut] = useState({ earlier: false, later: false }); // whether there is more than is loaded
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [view, setView] = useState({ top: 0, height: 600, columns: 0 });
  // The loaded part: the end, which grows, or a page, which does not change. Another stream or attempt starts at the end.
  const [asked, ask] = useState({ of, where: /** @type {import('../part/logpages.js').Where|null} */ (place && { at: place }) });
  const where = asked.of === of ? asked.where : null;
  const loading = useRef(false);
  const reading = useRef(/** @type {{line: Line, y: number, of: Lines, index: number}|null} */ (null)); // the first line in view, where it stands, and its number in all that came
  const drawnAs = useRef(/** @type {unknown[]} */ ([]));
  const wanted = useRef(/** @type {Place|null} */ (null)); // a byte that has not been scrolled to yet
  const sought = useRef(JSON.stringify([of, place])); // the byte around which a page was asked for last
  const heldOf = useRef('');

  useEffect(() => {
    const kept = new Lines(undefined, raw);
    let frame = 0;
    setError(null);
    const soon = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw((n) => n + 1); }); };
    if (where) {
      let mine = true;
      loading.current = true;
      const get = (/** @type {Record<string, any>} */ o) => getJSON(`api/v1/executions/${x.id}/logs${query({ stream, attempt, ...o })}`);
      pageOf(get, where).then((page) => {
        if (!mine) return;
        loading.current = false;
        if ('at' in where && page.chunks.length === 0) { // the log has no such byte
          wanted.current = null;
          ask({ of, where: null });
          return;
        }
        if (page.earlier) kept.unnumbered();
        for (const c of page.chunks) take(kept, c);
        lines.current = kept;
        heldOf.current = of;
        atEnd.current = false;
        setFollowing(false);
        setCut({ earlier: page.earlier, later: page.later });
      }, (e) => {
        if (!mine) return;
        loading.current = false;
        setError(e);
      });
      return () => {
        mine = false;
        loading.current = false;
      };
    }
    if (heldOf.current !== of) lines.current = kept;
    heldOf.current = of;
    setOver(false);
    setCut({ earlier: false, later: false });
    const stop = follow(`api/v1/executions/${x.id}/logs${query({ tail, stream, attempt })}`, (event, data) => {
      if (event === 'gap') {
        kept.unnumbered();
        setCut({ earlier: true, later: false });
      }
      if (event === 'log') take(kept, data);
      if (event === 'end') setOver(true);
      lines.current = kept;
      soon();
    }, { failed: setError });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [of, raw, where]);

  // How much there is to download: known when it is opened, and again when all has been written.
  const [sizes, setSizes] = useState(/** @type {import('../types').LogStream[]} */ ([]));
  useEffect(() => {
    let mine = true;
    getJSON(`api/v1/executions/${x.id}/logs/summary`).then((l) => { if (mine) setSizes(l.streams); }, () => {});
    return () => { mine = false; };
  }, [x.id, x.attempt, over]);

  useEffect(() => {
    wanted.current = place;
    draw((n) => n + 1);
  }, [of, JSON.stringify(place)]);
  const held = lines.current;
  const all = held.all;
  // Its height changes with the window, and with what comes below it, as the console does.
  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const seen = new ResizeObserver(() => draw((n) => n + 1));
    seen.observe(b);
    return () => seen.disconnect();
  }, [all.length > 0]);
  const earlier = cut.earlier || held.dropped > 0;
  const later = where !== null && (cut.later || open(x.status));
  const columns = wrap ? view.columns : 0;
  const starts = useMemo(() => (columns ? broken(all, columns, raw) : null), [held, held.changes, columns]);
  const rowOf = (/** @type {number} */ i) => (starts ? starts[Math.min(i, all.length)] : i);
  const full = rowOf(all.length) * height;
  const scale = Math.min(1, tallest / Math.max(full, 1));
  const lineOf = (/** @type {number} */ top) => Math.min(all.length - 1, starts ? lineAt(starts, Math.floor(top / scale / height)) : Math.floor(top / scale / height));

  const lastOf = (/** @type {HTMLDivElement} */ b) => lineOf(b.scrollTop + (b.clientHeight - height) * scale);

  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    const probe = b.querySelector('.probe')?.getBoundingClientRect().width || 0;
    const fits = probe ? Math.max(20, Math.floor((b.clientWidth - (b.querySelector('.n')?.getBoundingClientRect().width || 56) - 16) / (probe / 10))) : 0;
    if (b.clientHeight !== view.height || fits !== view.columns) setView((v) => ({ ...v, height: b.clientHeight, columns: fits }));
    const before = drawnAs.current;
    drawnAs.current = [held, held.dropped, columns];
    const moved = before.length > 0 && drawnAs.current.some((v, i) => v !== before[i]);
    if (wanted.current && !loading.current && all.length > 0) {
      const p = wanted.current;
      const i = held.find(p);
      const key = JSON.stringify([of, p]);
      if (i < 0 && sought.current !== key) {
        sought.current = key;
        ask({ of, where: { at: p } });
        return;
      }
      if (i >= 0) {
        wanted.current = null;
        const y = rowOf(i) * height * scale;
        if (y < b.scrollTop || y + height > b.scrollTop + b.clientHeight) b.scrollTop = y - b.clientHeight / 2;
        scrolled();
        return;
      }
    }
    if (!following || !atEnd.current) {
      const r = reading.current;
      if (!moved) return;
      // The visible text stays in place, even if it is now in other rows or on another page.
      const i = !r ? -1 : r.of === held ? r.index - held.dropped : held.find(r.line);
      b.scrollTop = !r || i < 0 ? 0 : rowOf(i) * height * scale - r.y;
      scrolled();
      return;
    }
    // Lines may arrive after the user has scrolled up and before the browser reports it: they must not move the view back.
    const from = put.current.box === b && !moved ? Math.min(put.current.top, b.scrollHeight - b.clientHeight) : 0;
    if (b.scrollTop < from - 2 * height) return;
    b.scrollTop = b.scrollHeight;
    put.current = { box: b, top: b.scrollTop };
  });

  /** Keeps what is in view: the line before which, or behind which, another page is asked for. @param {HTMLDivElement} b @param {boolean} [last] */
  const read = (b, last = false) => {
    let i = Math.max(0, last ? lastOf(b) : lineOf(b.scrollTop));
    while (all[i]?.note) i += last ? -1 : 1;
    reading.current = all[i] ? { line: all[i], y: rowOf(i) * height * scale - b.scrollTop, of: held, index: held.dropped + i } : null;
  };
  const scrolled = () => {
    const b = box.current;
    if (!b) return;
    // Lines, or a console below them, may come between the page's own scrolling to the end and this: only scrolling up leaves the end.
    const bottom = b.scrollHeight - b.clientHeight;
    const end = b.scrollTop >= (atEnd.current && put.current.box === b ? Math.min(put.current.top, bottom) : bottom) - 2 * height;
    atEnd.current = end && !where;
    setFollowing(atEnd.current);
    setView((v) => ({ ...v, top: b.scrollTop, height: b.clientHeight }));
    read(b);
    if (loading.current || wanted.current || all.length === 0) return;
    if (earlier && b.scrollTop < near * height) turn(true);
    else if (cut.later && b.scrollTop + b.clientHeight > b.scrollHeight - near * height) turn(false);
  };
  /** Asks for the page before or behind this one. @param {boolean} back */
  const turn = (back) => {
    const b = box.current;
    if (!b || loading.current || all.length === 0) return;
    const to = beside(held, lineOf(b.scrollTop), lastOf(b), cut.earlier);
    read(b, !back);
    loading.current = true;
    ask({ of, where: back ? to.before : to.after });
  };
  const toEnd = () => {
    atEnd.current = true;
    setFollowing(true);
    reading.current = null;
    put.current.box = null;
    if (where) ask({ of, where: null });
    else if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  const toStart = () => {
    reading.current = null;
    ask({ of, where: { after: '0.0', earlier: false } });
  };

  const first = Math.max(0, lineOf(view.top) - spare);
  const until = lineOf(view.top + view.height * scale) + 1;
  const shown = all.slice(first, Math.min(first + Math.ceil(view.height / height) + 2 * spare, Math.max(until, first) + spare));
  const plane = view.top - view.top / scale; // where the scaled plane begins
  const topOf = (/** @type {number} */ i) => plane + rowOf(first + i) * height;
  const marked = place && all[held.find(place)];
  const mark = (/** @type {MouseEvent} */ e) => {
    const row = e.target instanceof Element && e.target.matches('.n') ? /** @type {HTMLElement|null} */ (e.target.parentElement) : null;
    const l = row && all[Number(row.dataset.line) - held.dropped];
    if (l && !l.note) go(has(l, place) ? withQuery({}) : linkTo(l), { replace: true });
  };
  const markFirst = () => {
    const b = box.current;
    let i = b ? lineOf(b.scrollTop + (height - 1) * scale) : 0; // the first fully visible one
    while (all[i]?.note) i++;
    const l = all[i];
    if (l) go(linkTo(l), { replace: true });
  };

  const save = (/** @type {string} */ s) => download(`api/v1/executions/${x.id}/logs?stream=${s}&offset=0${attempt ? `&attempt=${attempt}` : ''}`, `${x.id}-${s}.txt`);
  const sized = (/** @type {string} */ s, a = attempt ? Number(attempt) : x.attempt) => sizes.find((o) => o.stream === s && o.attempt === a)?.bytes;
  const attempts = Array.from({ length: Math.min(x.attempt, 50) }, (_, i) => String(x.attempt - i));
  const typed = interactive(x) && !moment;
  const top = all[lineOf(view.top)];
  return html`
    <section class="panel">
      <div class="logbar">
        ${typed ? html`<h2>Console</h2>` : null}
        <select aria-label="Stream" value=${stream}
            onChange=${(/** @type {any} */ e) => go(withQuery({ stream: e.target.value }), { replace: true })}>
          <option value="">All streams</option>
          <option value="stdout">stdout</option>
          <option value="stderr">stderr</option>
          <option value="log">log</option>
        </select>
        ${x.attempt > 1 ? html`
          <select aria-label="Attempt" value=${attempt}
              onChange=${(/** @type {any} */ e) => go(withQuery({ attempt: e.target.value }), { replace: true })}>
            <option value="">All attempts</option>
            ${attempts.map((a) => html`<option value=${a}>Attempt ${a}</option>`)}
          </select>` : null}
        ${toggle('wrap', 'Wrap', wrap, 'Break long lines')}
        ${toggle('raw', 'Raw', raw, 'Show escape sequences and other control characters by their numbers', () => {
    if (!where && !following && reading.current) ask({ of, where: { at: reading.current.line } }); // the end may not contain the visible lines
  })}
        <span class="muted small num" role="status">${count(all.length, 'line')}${where ? ' here' : over ? '' : ', following'}</span>
        ${(where || earlier) && top && !top.note ? html`
          <span class="muted small num">
            ${top.stream} ${bytes(top.at)}
            ${sized(top.stream, top.attempt) ? ` of ${bytes(sized(top.stream, top.attempt) || 0)}` : ''}
          </span>` : null}
        <span class="spacer"></span>
        ${earlier ? html`
          <button type="button" class="plain" onClick=${toStart}>To the beginning</button>
          <button type="button" class="plain" onClick=${() => turn(true)}>Earlier</button>` : null}
        ${later ? html`<button type="button" class="plain" onClick=${() => turn(false)}>Later</button>` : null}
        ${following ? null : html`<button type="button" class="plain" aria-keyshortcuts="f" onClick=${toEnd}>To the end</button>`}
        ${['stdout', 'stderr'].map((s) => html`
          <button type="button" class="plain download" onClick=${() => save(s)}>
            Download ${s}
            ${sized(s) ? html` <span class="muted small num">${bytes(sized(s) || 0)}</span>` : null}
          </button>`)}
      </div>
      <div class="logbar finding">
        ${h(Search, {})}
        ${all.length === 0 ? null : place ? html`
          <span class="small num">
            Line at byte ${number(place.at)} of ${line(place.stream, 20)}
            ${x.attempt > 1 ? `, attempt ${place.attempt}` : ''}
            ${marked ? '' : held.changes > 0 && !loading.current ? ': it is not here' : ''}
          </span>
          ${copy(location.href, 'Copy the link to the line', 'l')}
          <button type="button" class="plain" onClick=${() => go(withQuery({}), { replace: true })}>Unmark</button>`
          : html`
          <button type="button" class="plain" aria-keyshortcuts="l" title="Another line is marked by a press on the edge before it"
              onClick=${markFirst}>
            Link to the first line in view
          </button>`}
      </div>
      ${find ? h(Found, { key: JSON.stringify([x.id, find, regexp, stream, attempt]), id: x.id, text: find, regexp, stream, attempt, linkTo }) : null}
      ${error ? trouble(error) : null}
      ${held.dropped > 0
        ? html`
          <p class="note small">${count(held.dropped, 'earlier line')} left out here: scroll up, or press Earlier, to read them.</p>`
        : null}
      ${all.length === 0 ? empty(over || !open(x.status) ? 'It wrote nothing' : 'Nothing written yet', html`
        <p>${over ? 'Neither stream has a byte.' : 'What it writes appears here at once.'}</p>`)
        : html`
        <div class=${`logview log ${wrap ? 'wrapped' : ''}`} style=${{ '--full': `${Math.ceil(full * scale) + height}px` }} ref=${box}
            onScroll=${scrolled} onClick=${mark} tabindex="0" role="log" aria-live="off" aria-label="What it wrote">
          <span class="probe" aria-hidden="true">0000000000</span>
          <div style=${{ height: `${Math.ceil(full * scale)}px` }}></div>
          ${rowsOf({ lines: shown, first: held.dropped + first, topOf, raw, marked: marked || undefined })}
        </div>`}
      ${typed ? h(Console, { key: x.id, x }) : null}
    </section>`;
}

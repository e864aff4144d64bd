// When attempts ran, by worker: a row per worker, a lane per slot in use at the same time.
import { html } from '../vendor/preact.js';
import { line, duration, number, count } from '../app/text.js';
import { look } from './status.js';
import { axis } from './timeline.js';

/** @typedef {import('../types').TimelineAttempt} Attempt */
/** @typedef {{from: number, to: number, at: number, end: number, all: Attempt[], status: string, lost: boolean}} Bar in ms since the beginning of the whole; at, end: where it is drawn, wide enough to be hit; all: more than one where they are too short to be told apart */
/** @typedef {{worker: string, attempts: number, lanes: Bar[][], hidden: number}} Row */
/** @typedef {{from: number, to: number}} Span what is drawn, in ms since the beginning of the whole */

const lanesOfWorker = 32;
const barsAtMost = 600; // in the document
const listed = 100; // attempts of a span
const leastShare = 0.1; // of what is drawn that a bar takes in its lane: 24 px, so that a finger hits it, of the 316 px of the narrowest lane

const tones = ['failed', 'timed_out', 'cancelled', 'running', 'provisioning', 'completed'];

/** The status that matters most: of several attempts in one bar. @param {string} a @param {string} b */
const graver = (a, b) => (tones.indexOf(a) <= tones.indexOf(b) ? a : b);

/**
 * The attempts by worker, the server itself last. Those of a worker that overlap are in lanes of their own. In a lane, short ones that begin
 * closer together than a bar is wide are one bar.
 * @param {Attempt[]} attempts
 * @param {number} now
 * @param {Span|null} [zoom]
 * @param {(a: Attempt) => boolean} [match] which have bars, where not all have; they stay in their lanes
 * @returns {{rows: Row[], length: number, span: Span, within: Attempt[], idle: number}} within: those that ran in the span, in the order of their beginnings; idle: attempts that no worker had
 */
export function byWorker(attempts, now, zoom = null, match = () => true) {
  const had = attempts.filter((a) => a.worker && a.claimed_at);
  const begun = Math.min(...attempts.map((a) => Date.parse(a.created_at || a.claimed_at || '')).filter((n) => !Number.isNaN(n)));
  const of = had.map((a) => {
    const from = Date.parse(a.claimed_at || '') - begun;
    return { a, from, to: Math.max(from, (a.finished_at ? Date.parse(a.finished_at) : now) - begun) };
  }).sort((x, y) => x.from - y.from || x.to - y.to);
  const length = Math.max(1, ...of.map((b) => b.to));
  const span = zoom && zoom.from < zoom.to && zoom.from < length ? { from: Math.max(0, zoom.from), to: Math.min(length, zoom.to) } : { from: 0, to: length };
  const least = leastShare * (span.to - span.from);
  /** @type {Map<string, {attempts: number, hidden: number, ends: number[], lanes: Bar[][]}>} */
  const workers = new Map();
  /** @type {Attempt[]} */
  const within = [];
  let drawn = 0;
  for (const { a, from, to } of of) {
    let w = workers.get(a.worker || '');
    if (!w) workers.set(a.worker || '', w = { attempts: 0, hidden: 0, ends: [], lanes: [] });
    let i = w.ends.findIndex((end) => end <= from);
    if (i < 0) i = w.ends.length;
    w.ends[i] = to;
    if (!match(a)) continue;
    w.attempts++;
    if (to < span.from || from > span.to) continue;
    within.push(a);
    if (i >= lanesOfWorker) { w.hidden++; continue; }
    const lane = w.lanes[i] || (w.lanes[i] = []);
    const at = Math.min(Math.max(from, span.from), span.to - least); // the last one keeps its width, too
    const last = lane[lane.length - 1];
    const behind = last ? Math.max(at, last.at + least) : at; // a long one makes room for a short one before it
    if (last && Math.min(to, span.to) < behind + least && behind > at) {
      last.all.push(a);
      last.to = Math.max(last.to, to);
      last.end = Math.max(last.end, to);
      last.status = graver(last.status, a.status);
      last.lost = last.lost || !!a.lost;
    } else if (drawn >= barsAtMost) {
      w.hidden++;
    } else {
      if (last) last.end = Math.min(last.end, behind);
      lane.push({ from, to, at: behind, end: Math.max(to, behind + least), all: [a], status: a.status, lost: !!a.lost });
      drawn++;
    }
  }
  const rows = [...workers].filter(([, w]) => w.attempts > 0).map(([worker, w]) => ({ worker, attempts: w.attempts, lanes: w.lanes.filter((l) => l && l.length > 0), hidden: w.hidden }));
  rows.sort((x, y) => Number(x.worker === 'engine') - Number(y.worker === 'engine') || (x.worker < y.worker ? -1 : 1));
  return { rows, length, span, within, idle: attempts.length - had.length };
}

/** The attempts as they were at a moment. @param {Attempt[]} attempts @param {number} then @returns {Attempt[]} */
export function attemptsAt(attempts, then) {
  const by = (/** @type {string|undefined} */ t) => !!t && Date.parse(t) <= then;
  return attempts.filter((a) => by(a.created_at)).map((a) => (by(a.finished_at) ? a : {
    ...a, finished_at: undefined, lost: false, code: undefined, status: by(a.started_at) ? 'running' : by(a.claimed_at) ? 'provisioning' : 'scheduled', claimed_at: by(a.claimed_at) ? a.claimed_at : undefined,
  }));
}

/** A span of the address, as in 1200-3400. @param {string|null} text @returns {Span|null} */
export function spanOf(text) {
  const m = /^(\d+)-(\d+)$/.exec(text || '');
  return m && Number(m[1]) < Number(m[2]) ? { from: Number(m[1]), to: Number(m[2]) } : null;
}

/** @param {Attempt} a @param {string} own what an execution that is not a task is called */
const nameOf = (a, own) => `${line(a.task || own, 120)}${a.index ? `[${a.index}]` : ''}${a.attempt > 1 ? `, attempt ${a.attempt}` : ''}`;

/** @param {Attempt} a */
const endOf = (a) => `${a.lost ? 'its worker was lost' : look(a.status).word.toLowerCase()}${a.code ? ` (${line(a.code, 60)})` : ''}`;

/** The attempts of a span by name: times are told to the millisecond, and bars cannot show apart what ran within one. @param {Attempt[]} attempts @param {string} own */
export const spanList = (attempts, own) => html`
  <div class="body">
    <dl class="facts">
      ${attempts.slice(0, listed).map((a) => html`
        <dt key=${a.execution + a.attempt}><a href=${`executions/${a.execution}`}>${nameOf(a, own)}</a></dt>
        <dd>${endOf(a)}</dd>`)}
    </dl>
    ${attempts.length > listed ? html`<p class="muted small">${number(attempts.length - listed)} more</p>` : null}
  </div>`;

/** @param {Bar} b @param {string} own */
function says(b, own) {
  const a = b.all[0];
  if (b.all.length === 1) return `${nameOf(a, own)}: ${endOf(a)}, ${a.finished_at ? 'ran' : 'has run'} ${duration(b.to - b.from)}`;
  const bad = b.all.filter((o) => o.lost || ['failed', 'timed_out'].includes(o.status)).length;
  return `${count(b.all.length, 'attempt')} from ${nameOf(a, own)} on, ${bad > 0 ? `${number(bad)} failed, ` : ''}in ${duration(b.to - b.from)}: show them apart`;
}

/** @param {{rows: Row[], span: Span, own: string, at: (s: Span) => string}} p at: the address of a span */
export function lanesView({ rows, span, own, at }) {
  const whole = span.to - span.from;
  const share = (/** @type {number} */ ms) => `${(100 * Math.max(0, Math.min(ms, whole))) / whole}%`;
  /** @param {Bar} b */
  const bar = (b) => {
    const wide = share(Math.min(b.end, span.to) - b.at);
    const several = b.all.length > 1;
    return html`
      <a key=${b.all[0].execution + b.all[0].attempt}
          class=${`span attempt ${b.lost ? 'bad' : look(b.status).tone} ${several ? 'several' : b.lost ? 'lost' : ''}`}
          title=${says(b, own)} aria-label=${says(b, own)}
          href=${several ? at({ from: Math.floor(b.from), to: Math.max(Math.ceil(b.to), Math.floor(b.from) + 1) }) : `executions/${b.all[0].execution}`}
          style=${{ left: share(b.at - span.from), width: wide }}></a>`;
  };
  return html`
    <div class="scroll wide" tabindex="0" role="group" aria-label="Timeline by worker">
      <div class="timeline">
        <div class="axis" aria-hidden="true"><span></span><div class="lane">${axis(span.from, whole)}</div></div>
        ${rows.map((r) => html`
          <div key=${r.worker} class="line-row">
            <div>
              <div class="user cut" title=${line(r.worker, 200)}>
                ${r.worker === 'engine' ? 'The server itself' : line(r.worker, 120)}
              </div>
              <div class="muted small num">${count(r.attempts, 'attempt')}</div>
            </div>
            <div class="lanes">
              ${r.lanes.map((l, i) => html`<div key=${i} class="lane">${l.map(bar)}</div>`)}
              ${r.hidden > 0 ? html`<div class="muted small">${number(r.hidden)} more at the same time</div>` : null}
            </div>
          </div>`)}
      </div>
    </div>
    <div class="body legend">
      <span><i class="swatch run"></i>an attempt; the colour is how it ended</span>
      <span><i class="swatch several"></i>several, one after another: open it to see them apart, and their names</span>
      <span><i class="swatch lost"></i>lost with its worker</span>
    </div>`;
}

// When the executions of a workflow's tasks waited and ran: a row for each, or lanes for those of a foreach that ran one after the other.
import { html } from '../vendor/preact.js';
import { line, duration, number } from '../app/text.js';
import { look } from './status.js';

/** @typedef {import('../types').Task} Task */
/** @typedef {{id: string, name: string, status: string, from: number, run: number, to: number}} Bar in ms since the first; run: when it was claimed, NaN before */
/** @typedef {{task: string, many: boolean, lanes: Bar[][], hidden: number, of: number}} Row of: how many executions it is about, of which hidden are not drawn */

const lanesOfTask = 24; // drawn of one task
const barsAtMost = 600; // in the document
const barsOfTask = 120; // of a task with more executions: chosen evenly, so that none of its time is left out. 12 in each tenth fit into 24 lanes
const leastShare = 0.1; // of the whole that a bar takes in its lane: 24 px, so that a finger hits it, of the 316 px of the narrowest lane

/**
 * Bars of all tasks that have begun, by the time at which they did. Executions that do not overlap share a lane.
 * @param {Task[]} tasks
 * @param {number} now
 * @param {(t: Task) => boolean} [match] which tasks have a row, where not all have; their bars stay where they are
 * @param {string[]} [statuses] which executions have bars where a task has several and some of these: without any all have
 * @param {Map<string, import('../types').TaskItems>} [whole] all executions of tasks that list only some of theirs
 * @returns {{rows: Row[], length: number, begun: number}}
 */
export function timeline(tasks, now, match = () => true, statuses = [], whole = new Map()) {
  const listed = new Map(tasks.map((t) => [t, whole.has(t.name) ? executionsOf(/** @type {import('../types').TaskItems} */ (whole.get(t.name))) : t.executions || []]));
  let begun = Infinity;
  for (const all of listed.values()) for (const e of all) if (e.created_at) begun = Math.min(begun, Date.parse(e.created_at));
  let length = 1;
  let drawn = 0;
  /** @type {{t: Task, bars: Bar[], of: number}[]} */
  const all = [];
  for (const t of tasks) {
    const bars = (listed.get(t) || []).filter((e) => e.created_at).map((e) => {
      const claimed = e.claimed_at && e.attempt <= 1 ? e.claimed_at : e.started_at || e.claimed_at;
      const to = (e.finished_at ? Date.parse(e.finished_at) : now) - begun;
      return { id: e.id, name: t.repeat ? `${t.name}, round ${e.index + 1}` : t.foreach ? `${t.name}[${e.index}]` : t.name, status: e.status, from: Date.parse(e.created_at || '') - begun, run: claimed ? Date.parse(claimed) - begun : NaN, to };
    }).sort((a, b) => a.from - b.from || a.to - b.to);
    if (bars.length === 0) continue;
    for (const b of bars) length = Math.max(length, b.to);
    if (!match(t)) continue;
    const some = many(t) ? bars.filter((b) => statuses.includes(b.status)) : [];
    const chosen = some.length > 0 ? some : bars;
    all.push({ t, bars: evenly(chosen), of: some.length > 0 ? some.length : Math.max(bars.length, t.created || 0) });
  }
  /** @type {Row[]} */
  const rows = [];
  for (const { t, bars, of } of all) {
    /** @type {Bar[][]} */
    const lanes = [];
    let hidden = of;
    for (const b of bars) {
      let lane = lanes.find((l) => Math.max(l[l.length - 1].to, start(l[l.length - 1], length) + leastShare * length) <= start(b, length));
      if (!lane && lanes.length < lanesOfTask) lanes.push(lane = []);
      if (!lane || drawn >= barsAtMost) continue;
      lane.push(b);
      drawn++;
      hidden--;
    }
    rows.push({ task: t.name, many: many(t), lanes: lanes.filter((l) => l.length > 0), hidden, of });
  }
  rows.sort((a, b) => first(a) - first(b));
  return { rows, length, begun };
}

/** Executions out of the short list of all that a task has. @param {import('../types').TaskItems} page @returns {import('../types').TaskExecution[]} */
function executionsOf(page) {
  const since = Date.parse(page.since);
  const at = (/** @type {number|undefined} */ ms) => (ms === undefined ? undefined : new Date(since + ms).toISOString());
  return page.items.map((i) => ({ id: i.id, index: i.index, status: i.status, attempt: i.attempt, created_at: at(i.created_ms), claimed_at: at(i.claimed_ms), started_at: at(i.started_ms), finished_at: at(i.finished_ms) }));
}

/** Of many bars some, by when they began. @param {Bar[]} bars */
function evenly(bars) {
  if (bars.length <= barsOfTask) return bars;
  const all = [...bars].sort((a, b) => begins(a) - begins(b) || a.to - b.to);
  return Array.from({ length: barsOfTask }, (_, i) => all[Math.round((i * (all.length - 1)) / (barsOfTask - 1))]);
}

/** Whether a task can have several executions: items, or rounds. @param {Task} t */
const many = (t) => !!t.foreach || !!t.repeat;

/** A waiting item takes no lane: all items of a foreach wait from the start. @param {Bar} b */
const begins = (b) => (Number.isNaN(b.run) ? b.from : b.run);

/** Where its bar is drawn: one at the end of the lane keeps its width. @param {Bar} b @param {number} length */
const start = (b, length) => Math.min(begins(b), (1 - leastShare) * length);

const first = (/** @type {Row} */ r) => r.lanes[0]?.[0]?.from ?? Infinity;

/** Round steps, about five of them. @param {number} length in ms */
export function ticks(length) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5, 6048e5];
  const step = steps.find((s) => length / s <= 6) || Math.ceil(length / 5 / 864e5) * 864e5;
  const out = [];
  for (let t = 0; t <= length; t += step) out.push(t);
  return out;
}

/** The marks of the axis from one time on; one at the end of the lane has no room for its words. @param {number} from @param {number} length in ms */
export const axis = (from, length) => ticks(length).map((t) => html`
  <span class="tick num" style=${{ left: `${(100 * t) / length}%` }}>
    ${t > 0.94 * length ? '' : from + t === 0 ? '0' : duration(from + t)}
  </span>`);

/** @param {Bar} b */
const says = (b) => {
  const ran = Number.isNaN(b.run) ? '' : `, ran ${duration(Math.max(0, b.to - b.run))}`;
  const waited = (Number.isNaN(b.run) ? b.to : b.run) - b.from;
  return `${line(b.name, 120)}: ${look(b.status).word.toLowerCase()}, waited ${duration(Math.max(0, waited))}${ran}`;
};

/** @param {{rows: Row[], length: number, href: (task: string) => string, selected?: string}} p */
export function timelineView({ rows, length, href, selected }) {
  const at = (/** @type {number} */ ms) => `${(100 * Math.max(0, ms)) / length}%`;
  /** @param {Bar} b @param {boolean} many */
  const bar = (b, many) => {
    const from = many ? begins(b) : b.from;
    const wide = at(Math.max(0, b.to - from));
    const wait = Number.isNaN(b.run) ? b.to - from : b.run - from;
    return html`
      <a key=${b.id} class=${`span ${look(b.status).tone}`} href=${`executions/${b.id}`} title=${says(b)} aria-label=${says(b)}
          style=${{ left: `min(${at(from)}, 100% - 30px)`, width: wide, paddingRight: `max(0px, 24px - ${wide})` }}>
        ${wait > 0 ? html`<i class="waited" style=${{ width: `${(100 * wait) / Math.max(1, b.to - from)}%` }}></i>` : null}
      </a>`;
  };
  return html`
    <div class="scroll wide" tabindex="0" role="group" aria-label="Timeline">
      <div class="timeline">
        <div class="axis" aria-hidden="true"><span></span><div class="lane">${axis(0, length)}</div></div>
        ${rows.map((r) => html`
          <div key=${r.task} class="line-row">
            <a class="user cut" href=${href(r.task)} aria-current=${r.task === selected ? 'true' : undefined}>${line(r.task, 80)}</a>
            <div class="lanes">
              ${r.lanes.map((l, i) => html`<div key=${i} class="lane">${l.map((b) => bar(b, r.many))}</div>`)}
              ${r.hidden > 0
                ? html`
                  <div class="muted small">
                    ${r.of > barsOfTask ? `Drawn are ${number(r.of - r.hidden)} of ${number(r.of)}, chosen evenly by when they began` : `${number(r.hidden)} more at the same time`}
                  </div>`
                : null}
            </div>
          </div>`)}
      </div>
    </div>
    <div class="body legend">
      <span><i class="swatch waited"></i>waited</span>
      <span><i class="swatch run"></i>ran; the colour is how it ended</span>
      <span class="muted">Of items and rounds, the time in which they ran.</span>
    </div>`;
}

// An execution as it was at an event of its numbered history. Which tasks had been started, and of how many items, is in the history itself;
// how far each of their executions was goes by the times that those have, which other clocks may have set.

/** @typedef {import('../types').Event} Event */
/** @typedef {import('../types').Task} Task */
/** @typedef {import('../types').TaskExecution} TaskExecution */
/** @typedef {{seq: number, last: number, event: Event, since: number, status: string, attempt: number, started: Map<string, number>, expanded: Map<string, number>, skipped: Set<string>}} Moment since: ms since the first event */

const stages = new Set(['requested', 'scheduled', 'provisioning', 'running', 'completed', 'failed', 'cancelled', 'timed_out']);

/**
 * The state after the events up to one; null if the history does not contain it.
 * @param {Event[]} events from the first on, without gaps
 * @param {number} seq
 * @returns {Moment|null}
 */
export function momentAt(events, seq) {
  const n = Math.max(1, Math.min(seq, events.length));
  const event = events[n - 1];
  if (!event) return null;
  /** @type {Moment} */
  const m = { seq: n, last: events.length, event, since: Date.parse(event.at) - Date.parse(events[0].at), status: 'requested', attempt: 0, started: new Map(), expanded: new Map(), skipped: new Set() };
  for (const e of events.slice(0, n)) {
    if (e.attempt > m.attempt) { // tasks belong to the attempt that started them
      m.attempt = e.attempt;
      m.started.clear();
      m.expanded.clear();
      m.skipped.clear();
    }
    if (stages.has(e.type)) m.status = e.type;
    if (e.type !== 'advanced') continue;
    const data = /** @type {any} */ (e.data) || {};
    for (const [name, k] of Object.entries(data.started || {})) m.started.set(name, (m.started.get(name) || 0) + Number(k));
    for (const [name, k] of Object.entries(data.expanded || {})) m.expanded.set(name, Number(k));
    for (const name of data.skipped || []) m.skipped.add(name);
  }
  return m;
}

/** @param {string|undefined} at @param {number} then */
const by = (at, then) => !!at && Date.parse(at) <= then;

/** @param {TaskExecution} e @param {number} then @returns {TaskExecution} */
function executionAt(e, then) {
  if (by(e.finished_at, then)) return e;
  const status = by(e.started_at, then) ? 'running' : e.attempt <= 1 && by(e.claimed_at, then) ? 'provisioning' : 'scheduled';
  return { ...e, status, finished_at: undefined, started_at: by(e.started_at, then) ? e.started_at : undefined, claimed_at: by(e.claimed_at, then) ? e.claimed_at : undefined };
}

const worst = ['failed', 'timed_out', 'cancelled'];
const ended = ['completed', ...worst];

/**
 * A task as it was at a moment.
 * @param {Task} t as it is now, with its executions @param {Moment} m
 * @returns {Task}
 */
export function taskAt(t, m) {
  const then = Date.parse(m.event.at);
  const bare = { name: t.name, needs: t.needs, action: t.action, foreach: t.foreach, repeat: t.repeat };
  if (m.skipped.has(t.name)) return { ...bare, status: 'skipped' };
  const created = m.started.get(t.name) || 0; // events of one transaction have one time, so times alone would say too much
  const executions = (t.executions || []).filter((e) => by(e.created_at, then)).slice(0, created).map((e) => executionAt(e, then));
  const total = m.expanded.get(t.name) || 0;
  if (created === 0 && total === 0) return { ...bare, status: 'pending' };
  /** @type {Record<string, number>} */
  const counts = {};
  for (const e of executions) counts[e.status] = (counts[e.status] || 0) + 1;
  const over = executions.filter((e) => ended.includes(e.status));
  const going = t.repeat ? !by(t.finished_at, then) : executions.length > over.length || created < total || executions.length === 0;
  const status = t.repeat ? (going ? 'running' : t.status) : !t.foreach ? executions[0]?.status || 'scheduled' : going ? 'running' : worst.find((s) => counts[s]) || 'completed';
  const times = (/** @type {'started_at'|'finished_at'} */ k) => executions.map((e) => e[k]).filter((s) => s !== undefined).sort();
  return { ...bare, status, total, created, ended: over.length, counts, executions, more: t.more, error: over.length > 0 ? t.error : undefined,
    started_at: times('started_at')[0], finished_at: going ? undefined : times('finished_at').at(-1) };
}

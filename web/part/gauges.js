// What code used of its limits, which are in its result. With cases each limit is for one case, and so is the usage.

/** @typedef {import('../types').CodeResult} CodeResult */
/** @typedef {{name: string, kind: 'time'|'size'|'count', used: number, limit: number, hit: boolean, all?: number}} Gauge used: NaN where it is not measured; limit: NaN where it is not known; all: of several cases together */

import { goDuration } from '../app/text.js';

/** The verdict that a limit leads to. @type {Record<string, string>} */
const verdicts = { wall: 'timeout', cpu: 'cpu_timeout', memory: 'oom', output: 'output_limit' };

/** @param {CodeResult} r @returns {Gauge[]} */
export function gaugesOf(r) {
  const cases = r.cases || [];
  const most = (/** @type {(c: {wall_ms?: number, cpu_ms?: number, stdout_bytes?: number, stderr_bytes?: number}) => number} */ of) => (cases.length > 0 ? Math.max(...cases.map(of)) : of(r));
  const longest = cases.length > 1 ? ', longest case' : '';
  const hit = (/** @type {string} */ limit) => !!r.limits_hit?.includes(limit) || r.verdict === verdicts[limit];
  /** Only whether they were reached is known of these. @param {string} name @param {'size'|'count'} kind @param {'pids'|'disk'} limit @returns {Gauge[]} */
  const unmeasured = (name, kind, limit) => (r.limits?.[limit] ? [{ name, kind, used: NaN, limit: r.limits[limit], hit: hit(limit) }] : []);
  return [
    { name: `Wall time${longest}`, kind: 'time', used: most((c) => c.wall_ms || 0), limit: goDuration(r.limits?.wall), hit: hit('wall'), all: longest ? r.wall_ms : undefined },
    { name: `CPU time${longest}`, kind: 'time', used: most((c) => c.cpu_ms || 0), limit: goDuration(r.limits?.cpu), hit: hit('cpu'), all: longest ? r.cpu_ms : undefined },
    { name: 'Peak memory', kind: 'size', used: r.peak_memory_bytes || 0, limit: r.limits?.memory || NaN, hit: hit('memory') },
    { name: cases.length > 1 ? 'Output, most of a case' : 'Output', kind: 'size', used: most((c) => (c.stdout_bytes || 0) + (c.stderr_bytes || 0)), limit: r.limits?.output || NaN, hit: hit('output') },
    ...unmeasured('Processes', 'count', 'pids'), ...unmeasured('Disk', 'size', 'disk'),
  ];
}

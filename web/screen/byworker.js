// The timeline of an execution by the workers that had its attempts; of a workflow, those of its tasks.
import { html, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { poll } from '../app/stream.js';
import { route, withQuery } from '../app/router.js';
import { line, count, number, duration } from '../app/text.js';
import { taskFilter } from '../part/taskfilter.js';
import { attemptsAt, byWorker, lanesView, spanList, spanOf } from '../part/lanes.js';
import { open } from '../part/status.js';
import { now, trouble, loading, empty } from '../part/kit.js';

/** @typedef {import('../types').TimelineAttempt} Attempt */

const most = 10000; // attempts that are kept
const pages = 500; // executions of one request

/** An attempt for the filter: one that was lost with its worker has failed. @param {Attempt} a */
const item = (a) => ({ name: a.task || '', status: a.lost ? 'failed' : a.status });

/** @param {{x: import('../types').Execution, then: number}} p then: the moment that is shown, or 0 */
export function ByWorker({ x, then }) {
  const [state, set] = useState({ attempts: /** @type {Attempt[]|null} */ (null), more: false, error: /** @type {unknown} */ (null) });
  const over = !open(x.status);
  useEffect(() => poll(async () => {
    /** @type {Attempt[]} */
    const all = [];
    let cursor = '';
    try {
      do {
        /** @type {import('../types').Timeline} */
        const t = await getJSON(`api/v1/executions/${x.id}/timeline${query({ limit: pages, cursor })}`);
        all.push(...t.attempts);
        cursor = t.next_cursor || '';
      } while (cursor && all.length < most);
    } catch (e) {
      set((s) => ({ ...s, error: e }));
      throw e;
    }
    set({ attempts: all, more: cursor !== '', error: null });
    return over ? false : undefined;
  }, 2000), [x.id, over]);
  if (state.error) return html`<div class="body">${trouble(state.error)}</div>`;
  if (!state.attempts) return loading();
  const attempts = then ? attemptsAt(state.attempts, then) : state.attempts;
  const own = line(x.action, 120);
  const zoom = spanOf(route.value.query.get('span'));
  const { match, fields } = taskFilter(attempts.map(item), 'attempt');
  const { rows, span, within, idle } = byWorker(attempts, attempts.some((a) => a.claimed_at && !a.finished_at) ? then || now.value : 0, zoom, match && ((a) => match(item(a))));
  if (rows.length === 0 && match) return html`
    ${fields}
    ${empty('Nothing matches', html`<p>No attempt that a worker has had has all of these.</p>`)}`;
  if (rows.length === 0) return empty('No worker has had any of it', html`<p>A bar is drawn for each attempt once a worker has it.</p>`);
  return html`
    ${fields}
    ${zoom ? html`
      <div class="body row">
        <span class="num">From ${duration(span.from)} to ${duration(span.to)}</span>
        <a class="button" href=${withQuery({ span: undefined })}>Show all of it</a>
      </div>` : null}
    ${lanesView({ rows, span, own, at: (s) => withQuery({ span: `${s.from}-${s.to}` }) })}
    ${zoom ? spanList(within, own) : null}
    ${idle > 0 || state.more ? html`
      <p class="body muted small">
        ${idle > 0 ? `${count(idle, 'attempt')} had no worker: they wait, or ended before one had them. ` : ''}
        ${state.more ? `Here are the first ${number(state.attempts.length)} attempts, in the order of tasks.` : ''}
      </p>` : null}`;
}

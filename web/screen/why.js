// Why an execution is in its state, and what would let it continue.
import { html, h, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { poll } from '../app/stream.js';
import { line, duration, clock, number, count } from '../app/text.js';
import { open, statusPill, waitWord } from '../part/status.js';
import { now, trouble, loading, panel } from '../part/kit.js';
import { linked } from '../part/linked.js';
import { nameOf, trailGraph, trailSentence } from '../part/trail.js';
import { lazy } from '../app/lazy.js';
import { EndIt } from './orderdialog.js';

const PauseOrder = lazy(() => import('./pause.js').then((m) => m.PauseOrder), () => null);
const Asking = lazy(() => import('./questions.js').then((m) => m.Asking));

const steps = 5; // of a trail

/** @typedef {import('../types').Why} Reason */

/** @type {Record<string, string>} */
const deadlineWords = { timeout: 'The attempt ends at', queue_timeout: 'Gives up waiting at', total_timeout: 'Must end by', gap: 'Lost unless an event comes by' };

/**
 * What an execution waits for, what that waits for in turn, and so on: its first holder of a key, or the task that a workflow's
 * wait goes back to. A loop ends the trail.
 * @param {Reason} why
 */
async function trailOf(why) {
  /** @type {Reason[]} */
  const trail = [];
  const seen = new Set([why.id]);
  for (let at = why; trail.length < steps;) {
    const next = at.root || at.holders?.[0];
    if (!next || seen.has(next)) return { trail, loop: !!next };
    seen.add(next);
    at = await getJSON(`api/v1/executions/${next}/why`);
    trail.push(at);
  }
  return { trail, loop: false };
}

/** What this page has for an advice: a button, a link, or else the command, which is for a terminal; a question of its own stands above. @param {import('../types').Advice} a @param {Reason} w @param {() => void} again */
function control(a, w, again) {
  const name = a.name || '';
  switch (a.do) {
    case 'resume': return html`
      ${h(PauseOrder, { key: `${a.kind} ${name}`, of: `${a.kind}s`, name, paused: true, again })}
      <span class="user muted">${line(`${a.kind} ${name}`, 160)}</span>`;
    case 'answer': return w.inquiry === name ? null : html`<a class="button primary" href=${`questions/${name}`}>Answer it</a>`;
    case 'cancel': return h(EndIt, { key: name, id: name, status: w.status, name: name === w.id ? nameOf(w) : name, again });
    case 'why': return html`<a class="button" href=${`executions/${name}/why`}>Why it waits</a>`;
    default: return a.command ? html`<code class="user">${line(a.command, 500)}</code>` : null;
  }
}

/** What can be ordered of a step, so that the ones before it go on. @param {Reason} w @param {() => void} again */
const orders = (w, again) => html`
  <div class="row">
    ${w.paused
      ? html`
        ${h(PauseOrder, { key: `${w.paused.kind} ${w.paused.name}`, of: /** @type {any} */ (`${w.paused.kind}s`), name: w.paused.name, paused: true, again })}
        <span class="user muted">${line(`${w.paused.kind} ${w.paused.name}`, 160)}</span>`
      : null}
    ${w.inquiry ? html`<a class="button" href=${`questions/${w.inquiry}`}>Answer it</a>` : null}
    ${h(EndIt, { id: w.id, status: w.status, name: nameOf(w), again })}
  </div>`;

/** @param {{why: Reason, trail: Reason[], loop: boolean, again: () => void}} p */
const trailPanel = ({ why, trail, loop, again }) => panel({
  title: 'What that waits for in turn', children: html`
    <div class="body stack">
      <p class="user">${trailSentence([why, ...trail], loop)}</p>
      ${trailGraph({ all: [why, ...trail], loop })}
    </div>
    <ol class="trail">
      ${trail.map((w) => html`
        <li key=${w.id}>
          <div class="row">
            <span class="user">${nameOf(w)}</span>
            <a class="mono" href=${`executions/${w.id}`}>${line(w.id)}</a>
            ${statusPill({ status: w.status })}
          </div>
          <p class="user">${linked(w.summary)}</p>
          ${(w.unblock || []).slice(0, 1).map((u) => html`<p class="user muted small">${linked(u.text)}</p>`)}
          ${orders(w, again)}
        </li>`)}
    </ol>
    ${loop ? html`<p class="note bad">The trail comes back to where it has been: these executions wait for one another.</p>` : null}`,
});

/** @param {import('./execution.js').Shown} p */
export function Why({ x }) {
  const [why, set] = useState(/** @type {import('../types').Why|null} */ (null));
  const [trail, setTrail] = useState(/** @type {{trail: Reason[], loop: boolean}} */ ({ trail: [], loop: false }));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [asked, ask] = useState(0);
  useEffect(() => {
    let mine = true;
    const stop = poll(async () => {
      try {
        /** @type {Reason} */
        const found = await getJSON(`api/v1/executions/${x.id}/why`);
        const behind = await trailOf(found);
        if (!mine) return false;
        set(found);
        setTrail(behind);
        setError(null);
      } catch (e) {
        if (mine) setError(e);
        throw e;
      }
      return open(x.status);
    }, 3000);
    return () => {
      mine = false;
      stop();
    };
  }, [x.id, x.status, x.attempt, asked]);
  if (!why) return error ? trouble(error) : loading();
  const again = () => ask((n) => n + 1);
  const left = why.until ? Date.parse(why.until) - now.value : 0;
  return html`
    <div class="stack">
      <p class=${`note user ${why.waiting === 'nothing' ? '' : 'run'}`} role="status">${linked(why.summary)}</p>
      ${why.self_held
        ? html`
          <p class="note bad">
            The workflow that this is a task of holds the key itself: with this limit it may wait for ever. Give the task a key of its own, or raise the limit.
          </p>`
        : null}
      ${why.inquiry ? h(Asking, { id: why.inquiry, key: why.inquiry }) : null}
      <div class="split">
        ${panel({ title: 'What is known', children: html`
          <div class="body stack">
            <dl class="facts">
              <dt>Waits for</dt>
              <dd>${waitWord(why.waiting)}</dd>
              ${why.position ? html`
                <dt>Place in line</dt>
                <dd class="num">
                  <a href=${'work' + query(why.place_of === 'key' ? { key: why.key } : { queue: why.queue })}>
                    ${number(why.position)}
                  </a>
                </dd>` : null}
              ${why.until
                ? html`<dt>Until</dt><dd class="num">${clock(why.until)}${left > 0 ? ` (in ${duration(left)})` : ''}</dd>`
                : null}
              ${why.queue ? html`
                <dt>Queue</dt>
                <dd><a href=${'work' + query({ queue: why.queue })} class="user">${line(why.queue)}</a></dd>` : null}
              ${why.place_of === 'queue' && why.paused?.kind !== 'queue' ? html`
                <dt>Could take it</dt>
                <dd class="num">
                  ${why.workers ? `${count(why.workers, 'worker')} with ${count(why.slots || 0, 'slot')}` : html`
                    <span class="bad">No worker</span>`}
                </dd>` : null}
              ${why.lacking && why.lacking.length > 0 ? html`
                <dt>Could not</dt>
                <dd>
                  <ul>
                    ${why.lacking.slice(0, 5).map((/** @type {import('../types').LackingWorker} */ l) => html`
                      <li class="user">${line(l.worker, 80)} lacks ${line(l.lacks.join(', '), 200)}</li>`)}
                  </ul>
                </dd>` : null}
              ${why.runtime ? html`<dt>Needs</dt><dd class="user">${line(why.runtime)}</dd>` : null}
              ${why.key
                ? html`<dt>Key</dt><dd><a href=${'work' + query({ key: why.key })} class="user">${line(why.key)}</a></dd>`
                : null}
              ${why.key && why.key_limit ? html`
                <dt>May be held by</dt>
                <dd class="num">${count(why.key_limit, 'execution')} at once</dd>` : null}
              ${(why.deadlines || []).map((/** @type {import('../types').Deadline} */ d) => html`
                <dt>${deadlineWords[d.of] || line(d.of)}</dt>
                <dd class="num">
                  ${clock(d.at)}
                  ${Date.parse(d.at) > now.value ? ` (in ${duration(Date.parse(d.at) - now.value)})` : ''}
                </dd>`)}
              ${why.lease_until ? html`
                <dt>Lease until</dt>
                <dd class="num">${clock(why.lease_until)}, renewed as long as its worker lives</dd>` : null}
              ${why.worker ? html`<dt>Worker</dt><dd class="mono user">${line(why.worker)}</dd>` : null}
              ${why.holders && why.holders.length > 0 ? html`
                <dt>Held by</dt>
                <dd>
                  <ul>${why.holders.map((o) => html`<li><a class="mono" href=${`executions/${o}/why`}>${line(o)}</a></li>`)}</ul>
                </dd>` : null}
              ${why.root ? html`
                <dt>Goes back to</dt>
                <dd><a class="mono" href=${`executions/${why.root}/why`}>${line(why.root)}</a></dd>` : null}
            </dl>
            ${(why.facts || []).length > 0
              ? html`<ul class="tight user">${why.facts.map((f) => html`<li>${linked(f)}</li>`)}</ul>`
              : null}
          </div>` })}
        ${panel({ title: 'What would unblock it', children: html`
          <div class="body">
            ${(why.unblock || []).length > 0
        ? html`
              <ul class="tight user unblock">
                ${why.unblock.map((a) => html`
                  <li>${linked(a.text)}${a.command ? html`<div class="row">${control(a, why, again)}</div>` : null}</li>`)}
              </ul>`
              : html`<p class="muted">Nothing has to be done.</p>`}
          </div>` })}
      </div>
      ${trail.trail.length > 0 || trail.loop ? trailPanel({ why, ...trail, again }) : null}
      ${error ? trouble(error) : null}
    </div>`;
}

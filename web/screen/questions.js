// Questions to people: the open ones, the results of the others, and the form for an answer.
import { html, h, useEffect, useMemo, useState } from '../vendor/preact.js';
import { getJSON, post, request, query } from '../app/api.js';
import { route, go } from '../app/router.js';
import { poll } from '../app/stream.js';
import { line, plain, clock, duration } from '../app/text.js';
import { json } from '../part/json.js';
import { members } from '../part/members.js';
import { fieldsOf, wrong, written, entered, form } from '../part/form.js';
import { now, since, idText, trouble, loading, panel, scroller, empty, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Inquiry} Inquiry */
/** @typedef {{i: Inquiry, raw: Record<string, string>}} Asked */

/** @param {Inquiry} i */
const whom = (i) => ((i.assignees || []).length > 0 ? (i.assignees || []).map((who) => line(who, 80)).join(', ') : 'anybody');

/** Until when it may be answered. @param {{i: Inquiry}} p */
function Due({ i }) {
  if (!i.due) return html`<span class="muted">never</span>`;
  const ms = Date.parse(i.due) - now.value;
  return html`
    <time datetime=${i.due} title=${clock(i.due)} class=${i.state === 'open' && ms < 3600e3 ? 'late' : ''}>
      ${ms > 0 ? `in ${duration(Math.ceil(ms / 1000) * 1000)}` : clock(i.due)}
    </time>`;
}

/** Its result, in a few words. @param {Inquiry} i */
const became = (i) => (i.state === 'open' ? html`<span>open</span>` : i.answer ? html`
  <span class=${i.answer.declined ? 'late' : ''}>
    ${i.answer.defaulted ? 'answered by default' : html`
      ${i.answer.declined ? 'declined' : 'answered'} by <span class="user">${line(i.answer.by, 80)}</span>`}
  </span>`
  : html`<span class="muted">${line(i.state)}</span>`);

export function Questions() {
  useTitle('Questions');
  const state = route.value.query.get('state') || 'open';
  const [all, set] = useState(/** @type {{rows: Inquiry[], cursor: string, of: string}|null} */ (null));
  const [most, setMost] = useState(100);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => poll(async () => {
    try {
      const page = await getJSON('api/v1/inquiries' + query({ state, limit: most }));
      set({ rows: page.inquiries || [], cursor: page.next_cursor || '', of: state });
      setError(null);
    } catch (e) {
      setError(e);
      throw e;
    }
  }, 3000, true), [state, most]);
  return html`
    <div>
      <div class="top">
        <h1>Questions</h1>
        <div class="field">
          <label for="state">State</label>
          <select id="state" value=${state}
              onChange=${(/** @type {any} */ e) => go('questions' + query({ state: e.target.value === 'open' ? '' : e.target.value }))}>
            ${['open', 'answered', 'expired', 'withdrawn', 'all'].map((s) => html`<option value=${s}>${s}</option>`)}
          </select>
        </div>
      </div>
      ${trouble(error)}
      ${!all || all.of !== state
        ? (error ? null : loading())
        : html`
          <div class="panel">
            ${all.rows.length === 0 ? empty(state === 'open' ? 'Nobody is asked anything' : 'No such questions', html`
              <p>A task with <code>action: ask</code> waits here for the answer of a person:</p>
              <pre>pawl apply examples/approval.yaml</pre>`)
              : scroller('Questions', html`
              <table class="rows">
                <thead>
                  <tr>
                    <th scope="col">Question</th>
                    <th scope="col">For</th>
                    <th scope="col">State</th>
                    <th scope="col">Asked</th>
                    <th scope="col">Due</th>
                  </tr>
                </thead>
                <tbody>
                  ${all.rows.map((i) => html`
                    <tr key=${i.id}>
                      <td><a class="open-row user" href=${`questions/${i.id}`}>${line(i.title, 120)}</a></td>
                      <td class="user">${whom(i)}</td>
                      <td>${became(i)}</td>
                      <td class="nowrap">${since(i.asked_at)}</td>
                      <td class="nowrap">${h(Due, { i })}</td>
                    </tr>`)}
                </tbody>
              </table>`)}
          </div>
          ${all.cursor && most < 1000
            ? html`
              <div class="more"><button type="button" onClick=${() => setMost(Math.min(1000, most + 100))}>Show more</button></div>`
            : null}`}
    </div>`;
}

/** The name of the latest answer from this browser. */
const keptName = () => {
  try {
    return localStorage.getItem('pawl.name') || '';
  } catch {
    return '';
  }
};

/** The fields of a form: the required ones in their order, and the others by name, as everywhere. @param {any} schema @param {string} raw */
function ordered(schema, raw) {
  const at = (/** @type {import('../part/form.js').Field} */ f) => (f.required ? schema.required.indexOf(f.name) : schema.required?.length || 0);
  return fieldsOf(raw)?.sort((a, b) => at(a) - at(b) || (a.name < b.name ? -1 : 1)) || null;
}

/** The form of an open question. @param {Asked & {again: () => void}} p */
function Form({ i, raw, again }) {
  const schema = i.form;
  const fields = useMemo(() => ordered(schema, raw.form || ''), [raw.form]);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [whole, setWhole] = useState('');
  const [by, setBy] = useState(keptName());
  const [note, setNote] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const ready = by.trim() !== '' && (fields ? fields.every((f) => wrong(f, entered(values, f)) === '') : whole.trim() !== '');
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      localStorage.setItem('pawl.name', by.trim());
    } catch {
      // Without storage the name is asked for again.
    }
    try {
      const answer = fields ? written(fields, values) : whole;
      await post(`api/v1/inquiries/${i.id}/answer`, `{"answer": ${answer}, "by": ${JSON.stringify(by.trim())}${note ? `, "note": ${JSON.stringify(note)}` : ''}}`);
      setError(null);
    } catch (err) {
      setError(err);
    }
    setBusy(false);
    again();
  };
  return html`
    <form class="stack body" onSubmit=${send}>
      ${fields ? form({ fields, values, set: (name, text) => setValues({ ...values, [name]: text }) })
    : html`
        <div class="field">
          <label for="whole">Answer, as JSON (required)</label>
          <textarea id="whole" rows="3" spellcheck=${false} value=${whole}
              onInput=${(/** @type {any} */ e) => setWhole(e.target.value)}></textarea>
          ${raw.form ? html`<details><summary>Its schema</summary>${json(raw.form, 'Schema')}</details>` : null}
        </div>`}
      <div class="field">
        <label for="by">Who answers (required)</label>
        <input id="by" autocomplete="username" value=${by} onInput=${(/** @type {any} */ e) => setBy(e.target.value)} />
        <p class="hint">Pawl has no accounts yet, and takes your word.</p>
      </div>
      <div class="field">
        <label for="note">Note (optional)</label>
        <input id="note" value=${note} onInput=${(/** @type {any} */ e) => setNote(e.target.value)} />
      </div>
      ${trouble(error)}
      <div><button type="submit" class="primary" disabled=${busy || !ready}>Answer</button></div>
    </form>`;
}

/** The question, and its form or its answer. @param {Asked & {again: () => void}} p */
const question = ({ i, raw, again }) => html`
  <div class="stack">
    ${i.text ? html`<p class="user lines">${plain(i.text)}</p>` : null}
    ${i.state === 'open' ? panel({ title: 'Answer', children: h(Form, { i, raw, again, key: i.id }) })
    : i.answer ? panel({ title: 'Answer', children: html`
      <div class="body stack">
        <p>${became(i)} ${since(i.answer.at)}${i.answer.note ? html`: <span class="user">${plain(i.answer.note)}</span>` : ''}</p>
        ${json(members(raw.answer || '').answer || 'null', 'Answer')}
      </div>` })
    : html`<p class="note">It was ${line(i.state)} at ${clock(i.closed_at || '')}: an answer would reach nothing.</p>`}
  </div>`;

/** Follows one question. @param {string} id */
function useInquiry(id) {
  const [state, set] = useState(/** @type {Asked|null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [round, next] = useState(0);
  useEffect(() => poll(async () => {
    try {
      const text = await request(`api/v1/inquiries/${encodeURIComponent(id)}`).then((r) => r.text());
      set({ i: JSON.parse(text), raw: members(text) });
      setError(null);
    } catch (e) {
      setError(e);
      throw e;
    }
  }, 3000), [id, round]);
  return { state, error, again: () => next((n) => n + 1) };
}

/** The question that an execution waits for, on its own screen. @param {{id: string}} p */
export function Asking({ id }) {
  const { state, error, again } = useInquiry(id);
  if (!state) return error ? trouble(error) : loading();
  return html`<section><h2 class="user">${line(state.i.title, 500)}</h2>${question({ ...state, again })}</section>`;
}

/** @param {{id: string}} p */
export function QuestionScreen({ id }) {
  const { state, error, again } = useInquiry(id);
  useTitle(state ? state.i.title : 'Question');
  if (!state) return error ? html`
    <div class="stack"><h1>Question</h1>${trouble(error)}<p><a href="questions">All questions</a></p></div>` : loading();
  const { i } = state;
  return html`
    <div>
      <div class="head">
        <nav class="crumbs" aria-label="Where it belongs"><a href="questions">Questions</a></nav>
        <div class="title"><h1 class="user">${line(i.title, 500)}</h1></div>
        <dl class="line">
          <div><dt>State</dt><dd>${became(i)}</dd></div>
          <div><dt>For</dt><dd class="user">${whom(i)}</dd></div>
          ${(i.exclude || []).length > 0 ? html`
            <div><dt>Not for</dt><dd class="user">${line((i.exclude || []).join(', '), 200)}</dd></div>` : null}
          <div><dt>Asked</dt><dd>${since(i.asked_at)}</dd></div>
          <div><dt>Due</dt><dd>${h(Due, { i })}</dd></div>
          <div>
            <dt>Asked by</dt>
            <dd><a class="mono" href=${`executions/${i.workflow || i.execution}`}>${line(i.workflow || i.execution)}</a></dd>
          </div>
          <div><dt>Id</dt><dd>${idText(i.id)}</dd></div>
        </dl>
      </div>
      ${error ? trouble(error) : null}
      ${question({ ...state, again })}
    </div>`;
}

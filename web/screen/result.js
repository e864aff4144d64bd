// The result of code: the verdict, its usage and limits, its cases, its output and its files.
import { html, h, useState } from '../vendor/preact.js';
import { apiURL, query } from '../app/api.js';
import { route } from '../app/router.js';
import { plain, line, bytes, duration, number, count } from '../app/text.js';
import { members } from '../part/members.js';
import { longText } from '../part/longtext.js';
import { caseAt } from '../part/caseat.js';
import { codeResult } from '../part/coderesult.js';
import { gaugesOf } from '../part/gauges.js';
import { diff } from '../part/diff.js';
import { lazy } from '../app/lazy.js';
import { verdictWord, verdictTone } from '../part/status.js';
import { panel, trouble, empty } from '../part/kit.js';

/** @typedef {import('../types').CodeResult} CodeResult */
/** @typedef {import('../types').CaseResult} CaseResult */

const Json = lazy(() => import('../part/json.js').then((m) => (/** @type {{raw: string, name: string}} */ p) => m.json(p.raw, p.name)));
const Dialogue = lazy(() => import('../part/dialogue.js').then((m) => m.dialogue));
const Coloured = lazy(() => import('../part/written.js').then((m) => (/** @type {{text: string}} */ p) => m.written(p.text)), () => null);

/** A program's output; most have no escape sequences. @param {string} text */
const written = (text) => (text.includes('\u001b') ? h(Coloured, { text }) : plain(text));

/** @param {import('../part/gauges.js').Gauge} g */
function gauge({ name, kind, used, limit, hit, all }) {
  const say = kind === 'time' ? duration : kind === 'size' ? bytes : number;
  if (Number.isNaN(used)) return html`
    <div class=${`gauge ${hit ? 'full' : ''}`}>
      <h2 class="name">${name}</h2>
      <div class="value">at most ${say(limit)}</div>
      <div class="hint">${hit ? 'The limit was reached' : 'What was used is not measured'}</div>
    </div>`;
  const share = Math.min(1, used / limit);
  return html`
    <div class=${`gauge ${hit ? 'full' : ''}`}>
      <h2 class="name">${name}</h2>
      <div class="value">${say(used)}</div>
      ${limit > 0 ? html`
        <div class="track" role="meter" aria-label=${name} aria-valuemin="0" aria-valuemax=${limit}
            aria-valuenow=${Math.min(used, limit)} aria-valuetext=${`${say(used)} of ${say(limit)}`}>
          <i style=${{ width: `${(share * 100).toFixed(1)}%` }}></i>
        </div>` : null}
      ${limit > 0 || all
        ? html`
          <div class="hint num">
            ${[limit > 0 ? `of ${say(limit)}${hit ? ': the limit was reached' : ''}` : '', all ? `${say(all)} in all` : ''].filter(Boolean).join('; ')}
          </div>`
        : null}
    </div>`;
}

/** @param {string} name @param {string} text @param {string|undefined} base64 @param {number} all @param {boolean|undefined} cut */
const output = (name, text, base64, all, cut) => panel({
  title: name, actions: html`<span class="muted small num">${bytes(all || 0)}${cut ? ', the beginning of it' : ''}</span>`,
  children: all ? base64 ? html`
    <pre class="code wrap" tabindex="0" aria-label=${name}>
      <span class="quiet">Not text: ${bytes(all)}, in base64: </span>
      ${line(base64, 2000)}
    </pre>` : longText({ text, name, cls: 'wrap', draw: written }) : html`<p class="body muted">Nothing</p>`,
});

/** @param {string} title @param {string} text @param {string} of @param {string} [note] */
const block = (title, text, of, note = '') => html`
  <div class="tight">
    <h3>${title}${note}</h3>
    ${longText({ text, name: `${title} of case ${line(of)}`, cls: 'wrap sunk', draw: written })}
  </div>`;

/** The output of a case. @param {string} title @param {string|undefined} text @param {string|undefined} base64 @param {string} of @param {boolean|undefined} cut */
const wrote = (title, text, base64, of, cut) => (text ? block(title, base64 || text, of, `${cut ? ', the beginning' : ''}${base64 ? ': not text, in base64' : ''}`) : null);

/** Text of an input: a string, or an object that has it; null where it is neither. @param {any} c */
const textOf = (c) => (typeof c === 'string' ? c : typeof c?.text === 'string' ? c.text : null);

/** The input, the expected output and the output of a case. @param {{id: string, c: CaseResult, given: any}} p id: of its execution */
const caseDetail = ({ id, c, given }) => {
  const stdin = textOf(given?.stdin);
  const expect = textOf(given?.expect);
  return html`
    <div class="tight">
      ${c.message && !c.mismatch ? html`<p class="user">${plain(c.message)}</p>` : null}
      ${c.mismatch ? html`
        <p>
          ${c.mismatch.line ? html`First difference in line ${number(c.mismatch.line)}` : html`
            First difference${c.mismatch.path ? html` at <code class="user">${c.mismatch.path}</code>` : null}`}: expected <code
              class="user">
            ${line(c.mismatch.want, 2000)}
          </code>, got <code class="user">${line(c.mismatch.got, 2000)}</code>
        </p>` : null}
      ${c.verdict === 'wrong_answer' && expect !== null && c.stdout && !c.stdout_base64
        ? html`
          <section class="panel">
            <header><h3>From what was expected to what it wrote${c.stdout_truncated ? ', as far as that is kept' : ''}</h3></header>
            ${diff(c.stdout_truncated ? expect.slice(0, c.stdout.length) : expect, c.stdout, `Difference in case ${line(c.name)}`, 'No difference in what is kept')}
          </section>`
        : null}
      <div class="columns">
        ${stdin !== null ? block('Standard input', stdin, c.name) : null}
        ${expect !== null ? block('Expected', expect, c.name) : null}
        ${wrote('stdout', c.stdout, c.stdout_base64, c.name, c.stdout_truncated)}
        ${wrote('stderr', c.stderr, c.stderr_base64, c.name, c.stderr_truncated)}
      </div>
      ${c.transcript?.length ? h(Dialogue, { turns: c.transcript, of: c.name }) : null}
      ${given ? html`<div><a class="button" href=${'new' + query({ from: id, case: c.name })}>Run this case alone</a></div>` : null}
    </div>`;
};

/** @param {{id: string, cases: CaseResult[], given: any[], summary: import('../types').CaseSummary|undefined}} p */
function Cases({ id, cases, given, summary }) {
  const failing = cases.filter((c) => c.verdict !== 'ok');
  const asked = route.value.query.get('case') || '';
  const [only, setOnly] = useState(failing.length > 0 && failing.length < cases.length && (asked === '' || failing.some((c) => c.name === asked)));
  const [chosen, choose] = useState(asked || failing.find((c) => c.mismatch || c.stdout || c.stderr || c.message || c.transcript)?.name || ''); // what differs in the first that did not pass is what is looked for
  const [most, setMost] = useState(200);
  const rows = (only ? failing : cases).slice(0, most);
  const total = summary?.total ?? cases.length;
  const passed = summary?.passed ?? cases.length - failing.length;
  return panel({
    title: `${number(passed)} of ${count(total, 'case')} passed`,
    actions: failing.length > 0 && failing.length < cases.length ? html`
      <button type="button" class="toggle" aria-pressed=${only} onClick=${() => setOnly(!only)}>
        Only those that did not pass
      </button>` : null,
    children: html`
      <div class="bar" aria-hidden="true">
        <i class="good" style=${{ width: `${(100 * passed) / Math.max(1, total)}%` }}></i>
        <i class="bad" style=${{ width: `${(100 * failing.length) / Math.max(1, total)}%` }}></i>
      </div>
      <div class="scroll">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Case</th>
              <th scope="col">Verdict</th>
              <th scope="col" class="right">Wall</th>
              <th scope="col" class="right">CPU</th>
              <th scope="col" class="right">Memory</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map((c) => [html`
              <tr key=${c.name}>
                <td>
                  <button type="button" class="bare open-row user" aria-expanded=${chosen === c.name}
                      onClick=${() => choose(chosen === c.name ? '' : c.name)}>
                    <span class="turn" aria-hidden="true">${chosen === c.name ? '▾' : '▸'}</span> ${line(c.name, 120)}
                  </button>
                </td>
                <td>
                  <span class=${verdictTone(c.verdict)}>${line(verdictWord(c.verdict))}</span>
                  ${c.uncompared ? html` <span class="muted small">not compared</span>` : null}
                </td>
                <td class="right num">${duration(c.wall_ms || 0)}</td>
                <td class="right num">${duration(c.cpu_ms || 0)}</td>
                <td class="right num">${bytes(c.peak_memory_bytes || 0)}</td>
              </tr>`,
      chosen === c.name ? html`
              <tr key=${`${c.name} detail`}><td colspan="5">${caseDetail({ id, c, given: given[caseAt(given, c.name)] })}</td></tr>`
              : null])}
          </tbody>
        </table>
      </div>
      ${(only ? failing : cases).length > most ? html`
        <div class="more"><button type="button" onClick=${() => setMost(most + 500)}>Show more</button></div>` : null}`,
  });
}

/** @param {{x: import('../types').Execution, files: import('../types').ResultFile[]}} p */
function Files({ x, files }) {
  const pathOf = (/** @type {string} */ f) => `api/v1/executions/${x.id}/files/${f.split('/').map(encodeURIComponent).join('/')}`;
  return panel({
    title: count(files.length, 'file'), children: html`
      <div class="scroll">
        <table>
          <thead><tr><th scope="col">Path</th><th scope="col" class="right">Size</th><th scope="col">Mode</th></tr></thead>
          <tbody>
            ${files.slice(0, 500).map((f) => html`
              <tr>
                <td><a class="mono user" href=${apiURL(pathOf(f.path))} download=${f.path.split('/').pop()}>${line(f.path)}</a></td>
                <td class="right num">${bytes(f.size)}</td>
                <td class="mono muted">${line(f.mode)}</td>
              </tr>`)}
          </tbody>
        </table>
      </div>`,
  });
}

/** @param {import('./execution.js').Shown} p */
export function Result({ x, raw }) {
  const r = codeResult(x);
  if (!r) return html`
    <div class="stack">
      ${x.error ? html`<p class="note bad user"><strong>${line(x.error.code, 80)}</strong>: ${plain(x.error.message)}</p>` : null}
      <div class="panel">${empty('No result', html`<p>It ended before its program ran.</p>`)}</div>
    </div>`;
  const { cases: given } = /** @type {any} */ (x.input) || {};
  const value = members(raw.output || '').result;
  return html`
    <div class="stack">
      <section class="panel">
        <div class="verdict">
          <strong class=${verdictTone(r.verdict)}>${line(verdictWord(r.verdict))}</strong>
          ${r.exit_code !== undefined && r.exit_code !== null ? html`<span class="muted">Exit code ${r.exit_code}</span>` : null}
          ${r.signal ? html`<span class="muted">${line(r.signal)}</span>` : null}
          ${r.reason ? html`<span class="user">${plain(r.reason)}</span>` : null}
          ${r.enforcement ? html`
            <span class="muted small">Limits held by ${line(r.enforcement)}${r.runtime ? `, ${line(r.runtime)}` : ''}</span>` : null}
        </div>
        <div class="gauges">${gaugesOf(r).map(gauge)}</div>
      </section>
      ${x.error && x.error.code !== r.verdict ? html`
        <p class="note bad user"><strong>${line(x.error.code, 80)}</strong>: ${plain(x.error.message)}</p>` : null}
      ${r.cases && r.cases.length > 0
        ? h(Cases, { id: x.id, cases: r.cases, given: Array.isArray(given) ? given : [], summary: r.summary })
        : html`
          <div class="split">
            ${output('stdout', r.stdout, r.stdout_base64, r.stdout_bytes, r.stdout_truncated)}
            ${output('stderr', r.stderr, r.stderr_base64, r.stderr_bytes, r.stderr_truncated)}
          </div>`}
      ${r.compile
        ? panel({ title: 'Compiler', actions: html`
          <span class=${verdictTone(r.compile.verdict)}>${line(verdictWord(r.compile.verdict))}</span>`,
        children: longText({ text: (r.compile.stdout || '') + (r.compile.stderr || '') || 'Nothing',
          name: 'What the compiler wrote', cls: 'wrap', draw: written }) })
        : null}
      ${value ? panel({ title: 'Result value', children: h(Json, { raw: value, name: 'Result value' }) }) : null}
      ${r.result_error ? html`<p class="note late user">${plain(r.result_error)}</p>` : null}
      ${r.files && r.files.length > 0 ? h(Files, { x, files: r.files }) : null}
      ${r.refused && r.refused.length > 0 ? html`
        <div class="note late">
          <p>Not taken:</p>
          <ul>${r.refused.slice(0, 50).map((f) => html`<li class="user">${plain(f)}</li>`)}</ul>
        </div>` : null}
    </div>`;
}

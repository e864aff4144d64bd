// A document of definitions, written here, dropped here or taken from what is registered: checked as it is written, and registered.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { request, post, query } from '../app/api.js';
import { route } from '../app/router.js';
import { line, plain, count } from '../app/text.js';
import { members } from '../part/members.js';
import { yaml as written } from '../part/yaml.js';
import { trouble, loading, panel, useTitle } from '../part/kit.js';

/** @typedef {import('../types').Validation} Validation */
/** @typedef {import('../types').DefinedVersion} DefinedVersion */

const example = `name: hello
input: {type: object, properties: {name: {type: string, default: world}}}
tasks:
  greet:
    action: code
    with:
      language: python
      source: print("Hello, \${{ input.name }}")
outputs: {said: "\${{ tasks.greet.output.stdout }}"}
`;

/** How long the text rests before it is checked, in milliseconds. */
const rests = 600;

const yaml = { 'Content-Type': 'application/yaml' };

/** The addresses of what a document defines, by kind. @param {DefinedVersion} d */
const address = (d) => {
  const name = encodeURIComponent(d.name);
  switch (d.kind) {
    case 'workflow': case 'action': return `definitions/${name}?version=${d.version}`;
    case 'schedule': return `schedules/${name}`;
    case 'rule': return `rules/${name}`;
    case 'webhook': return `webhooks/${name}`;
    default: return '';
  }
};

/** The faults of a document, each with a button that leads to its line. @param {{all: import('../types').FieldError[], show: (line: number) => void}} p */
const faults = ({ all, show }) => html`
  <ul class="faults">
    ${all.slice(0, 50).map((f) => html`
      <li>
        ${f.line ? html`<button type="button" class="plain num" onClick=${() => show(f.line || 1)}>Line ${f.line}</button> ` : null}
        ${f.path ? html`<code class="user">${line(f.path, 120)}</code> ` : null}
        <span class="user">${plain(f.message)}</span>
        ${f.fix ? html` <span class="muted user">(${plain(f.fix)})</span>` : null}
      </li>`)}
  </ul>
  ${all.length > 50 ? html`<p class="muted">And ${count(all.length - 50, 'more')}.</p>` : null}`;

export function Register() {
  const from = route.value.query.get('from') || '';
  useTitle(from ? `Change ${from}` : 'Register definitions');
  const [text, setText] = useState(from ? null : /** @type {string|null} */ (''));
  const [checked, setChecked] = useState(/** @type {{of: string, v: Validation}|null} */ (null));
  const [made, setMade] = useState(/** @type {DefinedVersion[]|null} */ (null));
  const [alias, setAlias] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const area = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const latest = useRef('');
  latest.current = text || '';
  useEffect(() => {
    if (!from) return;
    const [name, version] = from.split('@');
    request(`api/v1/definitions/${encodeURIComponent(name)}${query({ version })}`).then((r) => r.text())
      .then((raw) => setText(written(members(raw).document))).catch(setError);
  }, [from]);
  const check = async (/** @type {string} */ of) => {
    try {
      const v = await post('api/v1/definitions:validate', of, yaml);
      if (of === latest.current) { setChecked({ of, v: /** @type {Validation} */ (v) }); setError(null); }
    } catch (err) {
      if (of === latest.current) setError(err);
    }
  };
  useEffect(() => {
    if (!text || text.trim() === '') { setChecked(null); return; }
    const t = setTimeout(() => check(text), rests);
    return () => clearTimeout(t);
  }, [text]);
  const change = (/** @type {string} */ t) => { setText(t); setMade(null); };
  const take = async (/** @type {FileList|null|undefined} */ files) => {
    try {
      const all = await Promise.all([...(files || [])].map((f) => f.text()));
      if (all.length > 0) change(all.join('\n---\n'));
    } catch (err) {
      setError(err);
    }
  };
  const register = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const d = /** @type {{definitions: DefinedVersion[]}} */ (await post('api/v1/definitions' + query({ alias: alias.trim() }), text || '', yaml));
      setMade(d.definitions);
    } catch (err) {
      setError(err);
    }
    setBusy(false);
  };
  const show = (/** @type {number} */ n) => {
    const el = area.current;
    if (!el) return;
    const lines = (text || '').split('\n');
    const start = lines.slice(0, n - 1).reduce((sum, l) => sum + l.length + 1, 0);
    el.focus();
    el.setSelectionRange(start, start + (lines[n - 1] || '').length);
    el.scrollTop = Math.max(0, (n - 4) * (el.scrollHeight / Math.max(1, lines.length)));
  };
  const v = checked && checked.of === text ? checked.v : null;
  return html`
    <div>
      <div class="top"><h1>${from ? html`Change <span class="user">${line(from, 120)}</span>` : 'Register definitions'}</h1></div>
      ${text === null
        ? (error ? trouble(error) : loading())
        : html`
          <form class="stack" onSubmit=${register}>
            ${from
              ? html`
                <p class="muted small">
                  What is registered has no comments of the file that it came from. To register it makes a new version; executions that are under way keep theirs.
                </p>`
              : null}
            <div class="field">
              <label for="document">
                Workflows, actions, queues, schedules, triggers and rules, as YAML; several are separated by a line of ---
              </label>
              <textarea id="document" ref=${area} rows="24" spellcheck=${false} autocapitalize="off" value=${text}
                  onInput=${(/** @type {any} */ e) => change(e.target.value)}
                  onDragOver=${(/** @type {DragEvent} */ e) => e.preventDefault()}
                  onDrop=${(/** @type {DragEvent} */ e) => {
                    if (!e.dataTransfer?.files.length) return;
                    e.preventDefault();
                    take(e.dataTransfer.files);
                  }}></textarea>
            </div>
            <div class="row form-row">
              <div class="field">
                <label for="document-file">From files, which can be dropped as well</label>
                <input id="document-file" type="file" multiple accept=".yaml,.yml,.json"
                    onChange=${(/** @type {any} */ e) => { take(e.target.files); e.target.value = ''; }} />
              </div>
              <div class="field">
                <label for="alias">Alias that is moved to it</label>
                <input id="alias" placeholder="none: the name stands for it" value=${alias}
                    onInput=${(/** @type {any} */ e) => setAlias(e.target.value)} spellcheck=${false} autocomplete="off" />
              </div>
            </div>
            <div role="status">
              ${made ? null : text.trim() === '' ? html`
                <button type="button" onClick=${() => change(example)}>Begin with an example</button>`
                : !v ? html`<p class="muted">Checking …</p>` : v.valid ? html`
                <p>
                  Nothing is wrong with ${(v.definitions || []).map((d, i) => html`
                    ${i > 0 ? ', ' : ''}
                    ${d.kind} <b class="user">${line(d.name, 80)}</b>`)}.
                </p>` : null}
            </div>
            ${v && !v.valid && !made ? panel({ title: count((v.problems || []).length, 'fault'), children: html`
              <div class="body">${faults({ all: v.problems || [], show })}</div>` }) : null}
            ${made
              ? html`
                <div class="note" role="status">
                  <p>Registered:</p>
                  <ul class="tight">
                    ${made.map((d) => html`
                      <li>
                        ${address(d) ? html`<a class="user" href=${address(d)}>${line(d.name, 120)}</a>` : html`
                          <span class="user">${line(d.name, 120)}</span>`}
                        ${d.version ? `@${d.version}` : ''} <span class="muted">
                          ${line(d.kind)}
                          ${d.created ? '' : ', as it was already'}
                        </span>
                        ${d.kind === 'workflow' || d.kind === 'action'
                          ? html` <a class="button" href=${'new' + query({ action: d.name })}>Run</a>`
                          : null}
                      </li>`)}
                  </ul>
                </div>`
              : null}
            ${trouble(error)}
            <div>
              <button type="submit" class="primary" disabled=${busy || text.trim() === '' || (v !== null && !v.valid)}>
                Register
              </button>
            </div>
          </form>`}
    </div>`;
}

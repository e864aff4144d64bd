// A new submission: a program, or a registered action or workflow with its input.
import { html, h, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { getJSON, request, post, query } from '../app/api.js';
import { newKey, nextKey } from '../app/key.js';
import { route, go, withQuery } from '../app/router.js';
import { line } from '../app/text.js';
import { tokens } from '../part/json.js';
import { members } from '../part/members.js';
import { fieldsOf, wrong, written, entered, valuesOf, form } from '../part/form.js';
import { labelsOf, labelsText } from '../part/labels.js';
import { blank, caseAlone, programOf } from '../part/program.js';
import { copyAs } from '../part/copyas.js';
import { trouble, panel, useTitle } from '../part/kit.js';
import { lazy } from '../app/lazy.js';

/** @typedef {import('./settings.js').Settings} Settings */

const Fields = lazy(() => import('./settings.js').then((m) => m.Fields));

/** The other settings, whose code is loaded when they are opened. @param {{of: string, value: Settings, set: (s: Settings) => void}} p */
function More(p) {
  const [open, setOpen] = useState(Object.keys(p.value.texts).length > 0);
  return html`
    <details open=${open} onToggle=${(/** @type {any} */ e) => setOpen(e.target.open)}>
      <summary>More settings</summary>
      ${open ? h(Fields, p) : null}
    </details>`;
}

/** The part of a submission other than the action and its input. @param {string} labels @param {Settings} s */
function beside(labels, s) {
  if (s.wrong) throw new Error(s.wrong);
  const tags = labelsOf(labels);
  return { ...(Object.keys(tags).length > 0 ? { labels: tags } : {}), ...s.fields };
}

/** The built-in ones; workers add others. */
const known = ['bash', 'c', 'c++', 'go', 'javascript', 'python', 'typescript'];

const input = (/** @type {(v: string) => void} */ set) => (/** @type {any} */ e) => set(e.target.value);

/**
 * The server's check of the input so far, requested a moment after the last change.
 * @param {string} path
 * @param {() => unknown} body nothing while there is nothing to ask about
 * @param {unknown[]} of what the body is made of
 */
function useCheck(path, body, of) {
  const [check, setCheck] = useState(/** @type {import('../types').SubmissionCheck|null} */ (null));
  useEffect(() => {
    let mine = true;
    setCheck(null);
    const timer = setTimeout(() => {
      /** @type {unknown} */
      let now;
      try {
        now = body();
      } catch {
        return; // the JSON or a label is invalid, which is reported when it is sent
      }
      if (now) post(path, now).then((c) => { if (mine) setCheck(c); }, () => {});
    }, 400);
    return () => { mine = false; clearTimeout(timer); };
  }, of);
  return check;
}

/** @param {import('../types').SubmissionCheck|null} c */
const checkNote = (c) => html`
  <div role="status">
    ${!c ? null : c.valid ? html`
      <p class="muted small">
        It would run <span class="user">${line(c.action, 80)}${c.version ? `@${c.version}` : ''}</span>
        ${c.queue && c.kind !== 'workflow' ? html` in queue <span class="user">${line(c.queue, 60)}</span>` : ''}
        ${c.key ? html`, under key <span class="user">${line(c.key, 80)}</span>` : ''}.
      </p>`
      : html`
      <div class="note late">
        <p>Not yet right:</p>
        <ul class="tight">
          ${(c.problems || []).slice(0, 20).map((p) => html`
            <li class="user">
              ${p.path ? html`<code>${line(p.path, 100)}</code> ` : null}
              ${line(p.message, 300)}
              ${p.fix ? ` (${line(p.fix, 300)})` : ''}
            </li>`)}
        </ul>
      </div>`}
  </div>`;

/** @param {{first: import('../part/program.js').Program, settings: Settings}} p */
function Code({ first, settings }) {
  const [language, setLanguage] = useState(first.language);
  const [source, setSource] = useState(first.source);
  const [stdin, setStdin] = useState(first.stdin);
  const [interactive, setInteractive] = useState(first.interactive);
  const [cases, setCases] = useState(first.cases);
  const [labels, setLabels] = useState(first.labels);
  const [wall, setWall] = useState(first.wall);
  const [memory, setMemory] = useState(first.memory);
  const [more, setMore] = useState(settings);
  const [languages, setLanguages] = useState(known);
  const [key, setKey] = useState(newKey);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    getJSON('api/v1/workers?limit=200').then((w) => {
      const all = (w.workers || []).flatMap((/** @type {any} */ x) => x.kinds || []).filter((/** @type {string} */ k) => k.startsWith('code:'));
      setLanguages([...new Set([...known, ...all.map((/** @type {string} */ k) => k.slice(5))])].sort());
    }, () => {});
  }, []);
  const program = () => {
    const limits = { ...(wall ? { wall } : {}), ...(memory ? { memory } : {}) };
    return {
      language: language.trim(), source,
      ...(cases.length > 0 ? { cases: cases.map((c) => ({ ...(c.name ? { name: c.name } : {}), stdin: c.stdin, ...(c.expect !== '' ? { expect: c.expect } : {}) })) } : interactive ? { interactive } : stdin ? { stdin } : {}),
      ...(Object.keys(limits).length > 0 ? { limits } : {}),
    };
  };
  const submission = () => ({ ...program(), ...beside(labels, more) });
  const check = useCheck('api/v1/evaluations:validate', () => source !== '' && language.trim() !== '' && submission(), [language, source, stdin, interactive, cases, labels, wall, memory, more]);
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      const x = await post('api/v1/evaluations', submission(), { 'Idempotency-Key': key });
      go(`executions/${x.id}`);
    } catch (err) {
      setError(err);
      setKey(nextKey(key, err));
    }
    setBusy(false);
  };
  const change = (/** @type {number} */ i, /** @type {Partial<import('../part/casefiles.js').Case>} */ c) => setCases(cases.map((o, j) => (j === i ? { ...o, ...c } : o)));
  const take = async (/** @type {FileList|null|undefined} */ files) => {
    try {
      const all = [...(files || [])]; // the browser empties its list when the field is emptied
      const more = await import('../part/casefiles.js').then((m) => m.casesOf(all));
      if (more.length > 0) setCases((all) => [...all, ...more]);
      setError(null);
    } catch (err) {
      setError(err);
    }
  };
  const over = (/** @type {DragEvent} */ e) => { if (e.dataTransfer?.types.includes('Files')) e.preventDefault(); };
  const drop = (/** @type {DragEvent} */ e) => { if (e.dataTransfer?.files.length) { e.preventDefault(); take(e.dataTransfer.files); } };
  return html`
    <form class="stack" onSubmit=${send} onDragOver=${over} onDrop=${drop}>
      <div class="row form-row">
        <div class="field">
          <label for="language">Language</label>
          <input id="language" list="languages" required value=${language} onInput=${input(setLanguage)} spellcheck=${false}
              autocomplete="off" />
          <datalist id="languages">${languages.map((l) => html`<option value=${l}></option>`)}</datalist>
        </div>
        <div class="field">
          <label for="wall">Wall time limit</label>
          <input id="wall" placeholder="the language's own, as in 10s" value=${wall} onInput=${input(setWall)} />
        </div>
        <div class="field">
          <label for="memory">Memory limit</label>
          <input id="memory" placeholder="as in 64MB" value=${memory} onInput=${input(setMemory)} />
        </div>
        <div class="field">
          <label for="labels">Labels</label>
          <input id="labels" placeholder="team=docs, run=7" value=${labels} onInput=${input(setLabels)} spellcheck=${false} />
        </div>
      </div>
      <div class="field">
        <label for="source">Program</label>
        <textarea id="source" rows="16" required spellcheck=${false} autocapitalize="off" value=${source}
            onInput=${input(setSource)}></textarea>
      </div>
      ${cases.length === 0 ? html`
        <label class="check">
          <input type="checkbox" checked=${interactive} onChange=${(/** @type {any} */ e) => setInteractive(e.target.checked)} />
          Interactive: I type its input while it runs
        </label>` : null}
      ${cases.length === 0 && !interactive ? html`
        <div class="field">
          <label for="stdin">Standard input</label>
          <textarea id="stdin" rows="3" spellcheck=${false} value=${stdin} onInput=${input(setStdin)}></textarea>
        </div>` : null}
      ${cases.map((c, i) => html`
        <fieldset class="case" key=${i}>
          <legend class="small muted">
            Case ${c.name ? html`<span class="user">${line(c.name, 60)}</span>` : i + 1} <button type="button" class="plain"
                onClick=${() => setCases(cases.filter((_, j) => j !== i))}>
              Remove
            </button>
          </legend>
          <div class="split">
            <div class="field">
              <label for=${`in-${i}`}>Standard input</label>
              <textarea id=${`in-${i}`} rows="3" spellcheck=${false} value=${c.stdin}
                  onInput=${input((v) => change(i, { stdin: v }))}></textarea>
            </div>
            <div class="field">
              <label for=${`out-${i}`}>Expected on stdout (empty: anything)</label>
              <textarea id=${`out-${i}`} rows="3" spellcheck=${false} value=${c.expect}
                  onInput=${input((v) => change(i, { expect: v }))}></textarea>
            </div>
          </div>
        </fieldset>`)}
      <div class="field">
        <label for="case-files">
          Cases from files, which can be dropped as well: NAME.in, and NAME.out or NAME.ans for what is expected
        </label>
        <input id="case-files" type="file" multiple accept=".in,.out,.ans"
            onChange=${(/** @type {any} */ e) => { take(e.target.files); e.target.value = ''; }} />
      </div>
      ${h(More, { of: 'code', value: more, set: setMore })}
      ${trouble(error)}
      ${error ? null : checkNote(check)}
      <div class="row">
        <button type="submit" class="primary" disabled=${busy || source === ''}>Run</button>
        <button type="button" onClick=${() => setCases([...cases, { stdin: cases.length === 0 ? stdin : '', expect: '' }])}>
          Add a case
        </button>
        ${copyAs((w) => w.cli({ action: 'code', input: JSON.stringify(program()), ...beside(labels, more) }), (w) => w.curl('api/v1/evaluations', JSON.stringify(submission())))}
      </div>
    </form>`;
}

/** Where the text of a field that is no JSON goes wrong, as an error. @param {string} text */
function checked(text) {
  try {
    JSON.parse(text);
  } catch (e) {
    throw new Error(`The input is not JSON: ${/** @type {Error} */ (e).message}`);
  }
  return text;
}

/**
 * The version whose form is shown for a version or alias; of an alias of several versions the one that stands for the rest.
 * @param {string} name
 * @param {string} [which]
 */
async function versionOf(name, which) {
  if (which && /^\d+$/.test(which)) return which;
  const { aliases } = await getJSON(`api/v1/definitions/${encodeURIComponent(name)}/aliases`);
  const a = aliases.find((/** @type {import('../types').Alias} */ o) => o.alias === (which || 'latest'));
  return a ? String(a.to.find((/** @type {import('../types').AliasTarget} */ t) => !t.percent)?.version) : undefined;
}

/** @param {{first: {action: string, input: string, labels: string}, settings: Settings}} p */
function Action({ first, settings }) {
  const [action, setAction] = useState(first.action);
  const [text, setText] = useState(first.input);
  const [labels, setLabels] = useState(first.labels);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [more, setMore] = useState(settings);
  const [asForm, setAsForm] = useState(first.input === '');
  const [lossy, setLossy] = useState(false); // the form was asked for and cannot hold what is written
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  const [schema, setSchema] = useState(''); // as it was written
  const [key, setKey] = useState(newKey);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => { getJSON('api/v1/definitions?limit=200').then((p) => setNames((p.definitions || []).map((/** @type {any} */ d) => d.name)), () => {}); }, []);
  useEffect(() => {
    let mine = true;
    const [name, which] = action.trim().split('@');
    setSchema('');
    if (!names.includes(name)) return;
    versionOf(name, which).then((version) => request(`api/v1/definitions/${encodeURIComponent(name)}${query({ version })}`)).then((r) => r.text()).then((text) => { if (mine) setSchema(members(members(text).document || '').input || ''); }, () => {});
    return () => { mine = false; };
  }, [action, names.length]);
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const useForm = asForm && fields !== null && fields.length > 0;
  const faults = useForm ? fields.filter((f) => wrong(f, entered(values, f))) : [];
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    setBusy(true);
    try {
      const x = await post('api/v1/executions', submission(), { 'Idempotency-Key': key });
      go(`executions/${x.id}`);
    } catch (err) {
      setError(err);
      setKey(nextKey(key, err));
    }
    setBusy(false);
  };
  const body = () => (useForm ? written(fields, values) : text.trim() === '' ? '' : checked(text));
  /** The present submission as text: the checked text is the one that is sent. */
  const submission = () => {
    const parts = [`"action": ${JSON.stringify(action.trim())}`];
    if (body() !== '') parts.push(`"input": ${body()}`);
    for (const [name, v] of Object.entries(beside(labels, more))) parts.push(`${JSON.stringify(name)}: ${JSON.stringify(v)}`);
    return `{${parts.join(', ')}}`;
  };
  const check = useCheck('api/v1/executions:validate', () => action.trim() !== '' && faults.length === 0 && submission(), [action, text, labels, values, more, useForm, schema]);
  const toJSON = () => {
    if (useForm) setText(tokens(written(fields, values)).map((t) => t.text).join(''));
    setAsForm(false);
  };
  const toForm = () => {
    if (useForm || !fields) return;
    const found = valuesOf(fields, text);
    setLossy(found === null);
    if (found === null) return;
    setValues(found);
    setAsForm(true);
  };
  const write = (/** @type {string} */ t) => {
    setText(t);
    setLossy(false);
    if (t.trim() !== '') setAsForm(false); // it stays in sight when a schema is found
  };
  return html`
    <form class="stack" onSubmit=${send}>
      <div class="row form-row">
        <div class="field">
          <label for="action">Action or workflow</label>
          <input id="action" list="actions" required value=${action} onInput=${input(setAction)} spellcheck=${false}
              autocomplete="off" placeholder="grade, grade@3, noop" />
          <datalist id="actions">${names.map((n) => html`<option value=${n}></option>`)}</datalist>
        </div>
        <div class="field">
          <label for="action-labels">Labels</label>
          <input id="action-labels" placeholder="team=docs, run=7" value=${labels} onInput=${input(setLabels)} spellcheck=${false} />
        </div>
      </div>
      ${panel({
      title: 'Input',
      actions: fields && fields.length > 0 ? html`
        <span class="row" role="group" aria-label="Write the input as">
          <button type="button" class="toggle" aria-pressed=${useForm} onClick=${toForm}>Form</button>
          <button type="button" class="toggle" aria-pressed=${!useForm} onClick=${toJSON}>JSON</button>
        </span>`
        : null,
      children: html`
        <div class="body">
          ${useForm ? form({ fields, values, set: (n, v) => setValues({ ...values, [n]: v }) })
        : html`
            <div class="field">
              <label for="input">JSON; empty: no input</label>
              <textarea id="input" rows="14" spellcheck=${false} value=${text} onInput=${input(write)}></textarea>
            </div>
            <p class="hint" role="status">${lossy ? 'The form cannot hold all of this: it stays as JSON.' : ''}</p>`}
        </div>`,
    })}
      ${h(More, { of: 'action', value: more, set: setMore })}
      ${trouble(error)}
      ${error ? null : checkNote(check)}
      <div class="row">
        <button type="submit" class="primary" disabled=${busy || action.trim() === '' || faults.length > 0}>Run</button>
        ${copyAs((w) => w.cli({ action: action.trim(), input: body(), ...beside(labels, more) }), (w) => w.curl('api/v1/executions', submission()))}
      </div>
    </form>`;
}

export function New() {
  useTitle('New execution');
  const q = route.value.query;
  const from = q.get('from') || '';
  const one = q.get('case') || '';
  const action = q.get('action') || '';
  const [first, setFirst] = useState(/** @type {any} */ (from ? null : { code: blank, action: { action, input: '', labels: '' }, settings: { texts: {}, fields: {}, wrong: '' } }));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    if (!from) return;
    request(`api/v1/executions/${encodeURIComponent(from)}`).then((r) => r.text()).then(async (text) => {
      const x = JSON.parse(text);
      const whole = members(text).input || '';
      const raw = one === '' ? whole : caseAlone(whole, one);
      if (one !== '' && raw === '') throw new Error(`It has no case ${one}.`);
      const labels = labelsText(x.labels);
      const program = x.action === 'code' ? programOf(JSON.parse(raw)) : null;
      const doc = x.version ? (await getJSON(`api/v1/definitions/${encodeURIComponent(x.action)}${query({ version: x.version })}`)).document : null;
      setFirst({
        settings: await import('./settings.js').then((m) => m.settingsOf(x, doc)),
        code: program ? { ...program, labels } : blank,
        program: program !== null,
        action: { action: x.action + (x.version ? `@${x.version}` : ''), input: tokens(raw).map((t) => t.text).join(''), labels },
      });
    }).catch(setError);
  }, [from, one]);
  const asAction = q.get('as') === 'action' || (q.get('as') !== 'code' && ((from !== '' && !first?.program) || action !== ''));
  // Text in one form is still there after a look at the other.
  const seen = useRef({ action: false, code: false });
  if (first) seen.current[asAction ? 'action' : 'code'] = true;
  return html`
    <div>
      <div class="top"><h1>New execution</h1></div>
      ${from ? html`
        <p class="muted small">
          With the input and the settings of <a class="mono" href=${`executions/${from}`}>${line(from)}</a>
          ${one ? html` and its case <span class="user">${line(one, 120)}</span> alone` : ''}, to be changed.
        </p>` : null}
      <nav class="tabs" aria-label="What to run">
        <a href=${withQuery({ as: 'code' })} aria-current=${asAction ? undefined : 'page'}>Code</a>
        <a href=${withQuery({ as: 'action' })} aria-current=${asAction ? 'page' : undefined}>Action or workflow</a>
      </nav>
      ${trouble(error)}
      ${!first ? null : html`
        <div hidden=${!asAction}>${seen.current.action ? h(Action, { first: first.action, settings: first.settings }) : null}</div>
        <div hidden=${asAction}>${seen.current.code ? h(Code, { first: first.code, settings: first.settings }) : null}</div>`}
    </div>`;
}

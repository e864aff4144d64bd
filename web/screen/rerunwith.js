// A rerun's changes: another input, and outputs of tasks that then do not run.
import { html, useState } from '../vendor/preact.js';
import { line } from '../app/text.js';

/** @typedef {{input: string, outputs: Record<string, string>, by: string}} Given texts of JSON, as they were typed: no digit of a number is lost */

/** @type {Given} */
export const nothing = { input: '', outputs: {}, by: '' };

/** The fault of a JSON text; empty if it is valid. @param {string} text */
export function fault(text) {
  try {
    JSON.parse(text);
    return '';
  } catch (err) {
    return err instanceof Error ? err.message : String(err);
  }
}

/** The members of a rerun's request. @param {Given} g */
export function membersOf(g) {
  const all = [];
  if (g.input) all.push(`"input":${g.input}`);
  const outputs = Object.entries(g.outputs).map(([task, text]) => `${JSON.stringify(task)}:${text}`);
  if (outputs.length > 0) all.push(`"outputs":{${outputs.join(',')}}`);
  if (outputs.length > 0 && g.by) all.push(`"by":${JSON.stringify(g.by)}`);
  return all;
}

const typed = (/** @type {(v: string) => void} */ set) => (/** @type {any} */ e) => set(e.target.value);

/** Paths into workflows among the tasks. @param {{chosen: string[], choose: (path: string) => void, alone: boolean}} p */
export function Paths({ chosen, choose, alone }) {
  const [path, setPath] = useState('');
  const paths = chosen.filter((c) => /[/[]/.test(c));
  return html`
    <details open=${paths.length > 0}>
      <summary>Name a task within a workflow among the tasks, or an item</summary>
      <div class="stack">
        <div class="field">
          <label for="rerun-path">Path of what runs ${alone ? 'alone' : 'in any case'}, as deploy/verify[3] or test[2]</label>
          <input id="rerun-path" autocomplete="off" spellcheck=${false} value=${path} onInput=${typed(setPath)} />
        </div>
        <p class="row">
          <button type="button" disabled=${path.trim() === '' || chosen.includes(path.trim())}
              onClick=${() => { choose(path.trim()); setPath(''); }}>
            Plan with this path
          </button>
        </p>
        ${paths.map((c) => html`
          <p key=${c} class="row">
            <span class="mono user">${line(c, 200)}</span>
            <button type="button" aria-label=${`Remove: ${c}`} onClick=${() => choose(c)}>Remove</button>
          </p>`)}
      </div>
    </details>`;
}

/** @param {{was: string, tasks: string[], given: Given, set: (g: Given) => void}} p was: the input of the original */
export function Given({ was, tasks, given, set }) {
  const [input, setInput] = useState(was);
  const [task, setTask] = useState('');
  const [output, setOutput] = useState('');
  const [by, setBy] = useState('');
  const [wrong, setWrong] = useState({ of: '', say: '' });
  const take = (/** @type {string} */ of, /** @type {string} */ text, /** @type {() => void} */ then) => {
    const say = fault(text);
    setWrong({ of, say });
    if (!say) then();
  };
  const says = (/** @type {string} */ of) => (wrong.of === of && wrong.say ? html`
    <p class="note bad user" role="alert">This is no JSON: ${line(wrong.say, 200)}</p>` : null);
  return html`
    <details open=${given.input !== ''}>
      <summary>With another input</summary>
      <div class="stack">
        <div class="field">
          <label for="rerun-input">Input, as JSON. What it changes runs, and everything after that</label>
          <textarea id="rerun-input" rows="4" spellcheck=${false} value=${input} onInput=${typed(setInput)}></textarea>
        </div>
        ${says('input')}
        <p class="row">
          <button type="button" onClick=${() => take('input', input, () => set({ ...given, input }))}>Plan with this input</button>
          ${given.input ? html`
            <button type="button" onClick=${() => { setInput(was); set({ ...given, input: '' }); }}>Take the old one</button>` : null}
        </p>
      </div>
    </details>
    ${tasks.length === 0
      ? null
      : html`
        <details open=${Object.keys(given.outputs).length > 0}>
          <summary>Give an output by hand</summary>
          <div class="stack">
            <div class="field">
              <label for="rerun-task">Task that then does not run; of a foreach one item, as test[2]</label>
              <input id="rerun-task" list="rerun-tasks" autocomplete="off" spellcheck=${false} value=${task} onInput=${typed(setTask)} />
              <datalist id="rerun-tasks">${tasks.map((t) => html`<option value=${t}></option>`)}</datalist>
            </div>
            <div class="field">
              <label for="rerun-output">Its output, as JSON</label>
              <textarea id="rerun-output" rows="3" spellcheck=${false} value=${output} onInput=${typed(setOutput)}></textarea>
            </div>
            <div class="field">
              <label for="rerun-by">Who gives it, for those who look at it later (optional)</label>
              <input id="rerun-by" value=${by} onInput=${typed(setBy)} />
            </div>
            ${says('output')}
            <p class="row">
              <button type="button" disabled=${task.trim() === ''}
                  onClick=${() => take('output', output, () => { set({ ...given, by, outputs: { ...given.outputs, [task.trim()]: output } }); setTask(''); setOutput(''); })}>
                Plan with this output
              </button>
            </p>
            ${Object.entries(given.outputs).map(([t, text]) => html`
              <p key=${t} class="row">
                <span class="user">${line(t, 80)}: <span class="mono">${line(text, 120)}</span></span>
                <button type="button" aria-label=${`Remove: ${t}`}
                    onClick=${() => { const { [t]: _, ...outputs } = given.outputs; set({ ...given, outputs }); }}>
                  Remove
                </button>
              </p>`)}
          </div>
        </details>`}`;
}

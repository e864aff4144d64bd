// What changed between two versions of a definition.
import { html, useEffect, useState } from '../vendor/preact.js';
import { request, query } from '../app/api.js';
import { go, withQuery } from '../app/router.js';
import { members } from '../part/members.js';
import { yaml } from '../part/yaml.js';
import { diff } from '../part/diff.js';
import { trouble, loading, panel } from '../part/kit.js';

/** @param {{name: string, from: number, shown: number, raw: string}} p from: an earlier version; raw: the document that is shown */
export function Changed({ name, from, shown, raw }) {
  const [text, set] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    let mine = true;
    set('');
    request(`api/v1/definitions/${encodeURIComponent(name)}${query({ version: from })}`).then((res) => res.text())
      .then((t) => { if (mine) set(yaml(members(t).document)); }).catch(setError);
    return () => { mine = false; };
  }, [name, from]);
  const others = Array.from({ length: Math.min(shown - 1, 100) }, (_, i) => String(shown - 1 - i));
  return panel({
    title: `What changed since version ${from}`,
    actions: html`<select class="short-select" aria-label="Since version" value=${String(from)} onChange=${(/** @type {any} */ e) => go(withQuery({ since: e.target.value }), { replace: true })}>${others.map((v) => html`<option value=${v}>Version ${v}</option>`)}</select>`,
    children: error ? trouble(error) : text === '' ? loading() : diff(text, yaml(raw), 'What changed', 'The documents are the same'),
  });
}

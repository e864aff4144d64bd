// The document of a definition, as a file for pawl apply.
import { html, useMemo } from '../vendor/preact.js';
import { save } from '../app/save.js';
import { route, withQuery } from '../app/router.js';
import { json } from '../part/json.js';
import { longText } from '../part/longtext.js';
import { yaml } from '../part/yaml.js';
import { panel, copy } from '../part/kit.js';

/** @param {{raw: string, name: string}} p raw: the text of its JSON; name: of the file */
export function Document({ raw, name }) {
  const as = route.value.query.get('text') === 'json' ? 'json' : 'yaml';
  const text = useMemo(() => (as === 'json' ? raw : yaml(raw)), [raw, as]);
  return panel({
    title: 'Document',
    actions: html`
      <span class="row" role="group" aria-label="Written as">
      ${['yaml', 'json'].map((l) => html`
      <a key=${l} class="button toggle" role="button" aria-pressed=${l === as}
          href=${withQuery({ text: l === 'yaml' ? undefined : l })}>
      ${l.toUpperCase()}</a>`)}</span>
      <button type="button" onClick=${() => save(text, `${name}.${as}`, `application/${as}`)}>Download</button>
      ${copy(text, 'Copy the document')}`,
    children: html`
      <p class="body muted small">
      As it is kept: <code>pawl apply</code> takes the file again. It has no comments of the file that it came from.</p>
      ${as === 'json' ? json(raw, 'Document') : longText({ text, name: 'Document' })}`,
  });
}

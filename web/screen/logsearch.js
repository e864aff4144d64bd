// Lines of an execution's output, searched by the server: it has the whole text, and its regular expressions take linear time.
import { html, useEffect, useState } from '../vendor/preact.js';
import { getJSON, query } from '../app/api.js';
import { line, bytes, count, number } from '../app/text.js';
import { trouble } from '../part/kit.js';
import { noStyle, pieces } from '../part/ansi.js';

/** @typedef {import('../types').LogMatch} LogMatch */

const page = 100; // lines that are looked for at a time

/** One search: another has another key. @param {{id: string, text: string, regexp: boolean, stream: string, attempt: string, linkTo: (p: import('../part/lines.js').Place) => string}} p linkTo: the address of a place in the log */
export function Found({ id, text, regexp, stream, attempt, linkTo }) {
  const [found, setFound] = useState({ matches: /** @type {LogMatch[]} */ ([]), searched: 0, cursor: '', more: true, error: /** @type {unknown} */ (null) });
  const [wanted, setWanted] = useState(page);
  const ready = found.error !== null || !found.more || found.matches.length >= wanted;
  useEffect(() => {
    if (ready) return undefined;
    const asking = new AbortController();
    getJSON(`api/v1/executions/${id}/logs/search${query({ q: text, regexp, stream, attempt, after: found.cursor, limit: page })}`, { signal: asking.signal }).then((r) => {
      if (!asking.signal.aborted) setFound((f) => ({ matches: [...f.matches, ...r.matches], searched: f.searched + r.searched, cursor: r.next_cursor, more: r.more, error: null }));
    }, (error) => {
      if (!asking.signal.aborted) setFound((f) => ({ ...f, error }));
    });
    return () => asking.abort();
  }, [found, wanted]);

  return html`
    <section class="found" aria-label="Lines found">
      <p class="small muted" role="status">
        ${count(found.matches.length, 'line')} with <span class="user">${line(text, 100)}</span>
        ${ready ? '' : ', searching'}
        ${found.searched ? ` (${bytes(found.searched)} looked through)` : ''}
      </p>
      ${found.error ? trouble(found.error) : null}
      ${found.matches.length > 0 ? html`
        <div class="hits log" tabindex="0" role="region" aria-label="Lines found, with their places">
          ${found.matches.map((m) => html`
            <div class="hit" key=${`${m.attempt} ${m.stream} ${m.offset}`}>
              <a class="num" href=${linkTo({ attempt: m.attempt, stream: m.stream, at: m.offset })}>
                ${m.attempt > 1 ? `attempt ${m.attempt} ` : ''}
                ${m.stream} ${number(m.offset)}
              </a> <span class="user">
                ${pieces(m.line, noStyle()).map((p) => p.text).join('')}
                ${m.cut ? html`<span class="quiet"> … of a longer line</span>` : null}
              </span>
            </div>`)}
        </div>` : null}
      ${ready && found.more && !found.error ? html`
        <button type="button" onClick=${() => setWanted(found.matches.length + page)}>Search on</button>` : null}
    </section>`;
}

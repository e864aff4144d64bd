// A form for the simple part of a JSON Schema: an object of texts, numbers, choices and switches. Everything else is written as JSON.
// Values are kept as JSON text, so that a number reaches the server as it was typed.
import { html } from '../vendor/preact.js';
import { line, plain } from '../app/text.js';
import { elements, members } from './members.js';

/**
 * The kind of a field: one of several texts ("choice"), or of several values ("pick"), by their JSON. An empty text among choices could
 * not be told from none. raw has the enum's values as JSON.
 * @param {any} s @param {string[]} raw
 */
function typeOf(s, raw) {
  if (Array.isArray(s?.enum) && raw.length > 0) {
    if (s.enum.every((/** @type {any} */ v) => typeof v === 'string' && v !== '')) return 'choice';
    if (raw.every((v) => !/^[[{]/.test(v))) return 'pick';
  }
  return ['string', 'integer', 'number', 'boolean'].includes(s?.type) ? s.type : 'json';
}

/**
 * The fields of a schema, by its text: the defaults keep their digits. Null where it is not of an object with properties.
 * @param {string} text
 */
export function fieldsOf(text) {
  const schema = text === '' ? null : JSON.parse(text);
  if (!schema || schema.type !== 'object' || typeof schema.properties !== 'object' || !schema.properties) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const raw = members(members(text).properties);
  return Object.entries(schema.properties).map(([name, s]) => {
    const own = members(raw[name]);
    const options = elements(own.enum || '');
    const type = typeOf(s, options);
    return { name, schema: /** @type {any} */ (s), type, options: type === 'choice' ? options.map((v) => JSON.parse(v)) : options, required: required.has(name), otherwise: own.default || '' };
  });
}

/** @typedef {NonNullable<ReturnType<typeof fieldsOf>>[number]} Field */

/** Why a value cannot be sent; '' if it can. @param {Field} f @param {string} text */
export function wrong(f, text) {
  if (text === '') return f.required && f.schema.default === undefined && f.type !== 'string' ? 'It is required.' : '';
  if ((f.type === 'integer' || f.type === 'number') && !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim())) return 'It is not a number.';
  if ((f.type === 'integer' || f.type === 'number') && Number(text) < f.schema.minimum) return `It is less than ${f.schema.minimum}.`;
  if ((f.type === 'integer' || f.type === 'number') && Number(text) > f.schema.maximum) return `It is more than ${f.schema.maximum}.`;
  if (f.type === 'json') {
    try {
      JSON.parse(text);
    } catch {
      return 'It is not JSON.';
    }
  }
  return '';
}

/** The text of a field, which may have any name. @param {Record<string, string>} values @param {Field} f */
export const entered = (values, f) => (Object.hasOwn(values, f.name) ? values[f.name] : '');

/** The object that the fields make, as JSON text. @param {Field[]} fields @param {Record<string, string>} values */
export function written(fields, values) {
  const parts = [];
  for (const f of fields) {
    const text = entered(values, f);
    if (text === '' && !takesEmpty(f)) continue;
    parts.push(`${JSON.stringify(f.name)}: ${f.type === 'string' || f.type === 'choice' ? JSON.stringify(text) : text.trim()}`);
  }
  return `{${parts.join(', ')}}`;
}

/** Whether a field can send an empty text. @param {Field} f */
const takesEmpty = (f) => f.required && f.type === 'string' && f.schema.default === undefined;

/** A field's text for a JSON value; null if the field cannot hold it. @param {Field} f @param {string} raw */
function typed(f, raw) {
  if (f.type === 'json') return raw;
  if (f.type === 'pick') return f.options.includes(raw) ? raw : null;
  if (f.type === 'boolean') return raw === 'true' || raw === 'false' ? raw : null;
  if (f.type === 'integer' || f.type === 'number') return /^[-0-9]/.test(raw) ? raw : null;
  const v = raw[0] === '"' ? JSON.parse(raw) : null;
  if (v === null || (f.type === 'choice' && !f.schema.enum.includes(v))) return null;
  return (v === '' && !takesEmpty(f)) || /[\r\n]/.test(v) ? null : v; // a field of one line removes line breaks
}

/**
 * The fields' values from an object's JSON: written makes the same members from them. Null if the form would lose something.
 * @param {Field[]} fields @param {string} text
 * @returns {Record<string, string>|null}
 */
export function valuesOf(fields, text) {
  const t = text.trim();
  if (t === '') return {};
  try {
    JSON.parse(t);
  } catch {
    return null;
  }
  if (t[0] !== '{') return null;
  const found = Object.entries(members(t)).map(([name, raw]) => {
    const f = fields.find((o) => o.name === name);
    return [name, f ? typed(f, raw) : null];
  });
  return found.some(([, v]) => v === null) ? null : Object.fromEntries(found);
}

/** A field's default, for its hint. @param {Field} f */
const otherwise = (f) => line(f.otherwise[0] === '"' ? JSON.parse(f.otherwise) : f.otherwise, 120);

/** @param {{fields: Field[], values: Record<string, string>, set: (name: string, text: string) => void}} p */
export const form = ({ fields, values, set }) => html`
  <div class="stack">
    ${fields.map((f, i) => {
  const id = `field-${i}`;
  const text = entered(values, f);
  const change = (/** @type {any} */ e) => set(f.name, e.target.value);
  const fault = text === '' ? '' : wrong(f, text);
  return html`
      <div class="field" key=${f.name}>
        <label for=${id}><span class="user">${line(f.schema.title || f.name, 120)}</span>${f.required ? ' (required)' : ''}</label>
        ${f.type === 'choice' || f.type === 'pick' ? html`
          <select id=${id} value=${text} onChange=${change}>
            <option value="">${otherwise(f) ? `Default: ${otherwise(f)}` : '–'}</option>
            ${f.options.map((/** @type {string} */ v) => html`<option value=${v}>${line(v)}</option>`)}
          </select>`
          : f.type === 'boolean' ? html`
          <select id=${id} value=${text} onChange=${change}>
            <option value="">${otherwise(f) ? `Default: ${otherwise(f)}` : '–'}</option>
            <option value="true">true</option>
            <option value="false">false</option>
          </select>`
          : f.type === 'json' ? html`
          <textarea id=${id} rows="4" spellcheck=${false} placeholder=${otherwise(f) ? `Default: ${otherwise(f)}` : 'JSON'}
              value=${text} onInput=${change}></textarea>`
          : html`
          <input id=${id} inputmode=${f.type === 'string' ? undefined : 'decimal'} placeholder=${otherwise(f)} value=${text}
              onInput=${change} />`}
        ${f.schema.description ? html`<p class="hint user">${plain(f.schema.description)}</p>` : null}
        ${fault ? html`<p class="hint bad" role="alert">${fault}</p>` : null}
      </div>`;
})}
  </div>`;

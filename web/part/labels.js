// Labels as they are typed: name=value, separated by commas or line feeds. A name or value with such a character is quoted, as in JSON.

// A name, a value, and what ends the pair.
const pair = /\s*("(?:[^"\\]|\\.)*"|[^"=,\n][^=,\n]*?)\s*=\s*("(?:[^"\\]|\\.)*"(?=\s*(?:[,\n]|$))|[^,\n]*?)\s*(?:[,\n]|$)/y;
const blank = /\s*[,\n]|\s+$/y;

/** @param {string} s */
function unquoted(s) {
  if (s[0] !== '"' || s.length < 2 || !s.endsWith('"')) return s;
  try {
    return JSON.parse(s);
  } catch {
    return s; // not JSON: a text that begins and ends with quotation marks
  }
}

/** The labels of a text. Anything else in it is an error. @param {string} text @returns {Record<string, string>} */
export function labelsOf(text) {
  /** @type {Record<string, string>} */
  const out = Object.create(null);
  for (let at = 0; at < text.length;) {
    blank.lastIndex = pair.lastIndex = at;
    if (blank.exec(text)) {
      at = blank.lastIndex;
      continue;
    }
    const m = pair.exec(text);
    if (!m) throw new Error(`"${text.slice(at).split(/[,\n]/)[0].trim().slice(0, 60)}" is not a label: labels are written as name=value, separated by commas; a value with a comma in quotation marks, as in note="a, b"`);
    out[unquoted(m[1])] = unquoted(m[2]);
    at = pair.lastIndex;
  }
  return out;
}

/** @param {string} s @param {RegExp} signs */
const quoted = (s, signs) => (signs.test(s) || s !== s.trim() ? JSON.stringify(s) : s);

/** Labels as a text of one line. @param {Record<string, string>|undefined} labels */
export const labelsText = (labels) => Object.entries(labels || {}).map(([k, v]) => `${quoted(k, /[",=\r\n]|^$/)}=${quoted(v, /[,\r\n]|^"/)}`).join(', ');

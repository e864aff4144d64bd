// JSON as YAML that pawl apply reads as the same document: the order and the digits stay, and a text of several lines is one.
import { tokens } from './json.js';

// The escaped characters: those that YAML does not allow, and all invisible ones, which a copy would lose.
const odd = /[\u{7f}-\u{a0}\u{2028}\u{2029}\u{fff9}-\u{ffff}\p{Default_Ignorable_Code_Point}]/gu;
const control = /[\u{0}-\u{8}\u{b}-\u{1f}]/u;

// Words that some YAML reader does not read as a string.
const reserved = /^(true|false|null|yes|no|on|off|y|n|nan|inf)$/i;

/** @param {string} c */
const escaped = (c) => {
  const n = c.codePointAt(0) || 0;
  return n > 0xffff ? `\\U${n.toString(16).padStart(8, '0')}` : `\\u${n.toString(16).padStart(4, '0')}`;
};

/** A text in one line. @param {string} s */
function text(s) {
  if (/^[a-z_][\w ./-]*$/i.test(s) && !s.endsWith(' ') && !reserved.test(s)) return s;
  const bare = !control.test(s) && s.search(odd) < 0 && !/[\t\n]/.test(s);
  return bare && /["\\]/.test(s) ? `'${s.replaceAll("'", "''")}'` : JSON.stringify(s).replace(odd, escaped);
}

/** The lines of a text that is written as a block, after the first of which all are indented; null for one that is not. @param {string} s */
function block(s) {
  if (!s.includes('\n') || /^\s|\n[ \t]+$/.test(s) || control.test(s) || s.search(odd) >= 0) return null;
  const end = /\n*$/.exec(s)?.[0].length || 0;
  const lines = s.split('\n');
  if (end > 0) lines.pop();
  return [end === 0 ? '|-' : end === 1 ? '|' : '|+', ...lines];
}

/** @param {string} raw the text of a JSON value @returns {string} */
export function yaml(raw) {
  const list = tokens(raw).filter((t) => t.cls !== '');
  let i = 0;
  /** The lines of the next value. The first goes beside what it belongs to, unless they are members or items. @returns {{lines: string[], inner: 'members'|'items'|''}} */
  const value = () => {
    const t = list[i++];
    if (t.text !== '{' && t.text !== '[') return { lines: t.cls === 'j-str' ? block(JSON.parse(t.text)) || [text(JSON.parse(t.text))] : [t.text], inner: '' };
    const inner = t.text === '{' ? 'members' : 'items';
    /** @type {string[]} */
    const lines = [];
    for (;;) {
      let lead = '-';
      if (inner === 'members') {
        lead = `${text(JSON.parse(list[i].text))}:`;
        i += 2; // and the colon
      }
      const v = value();
      const beside = v.inner === '' || inner === 'items';
      lines.push(beside ? `${lead} ${v.lines[0]}` : lead);
      for (const l of beside ? v.lines.slice(1) : v.lines) lines.push(l && `  ${l}`);
      if (list[i++].text !== ',') return { lines, inner };
    }
  };
  return value().lines.join('\n') + '\n';
}

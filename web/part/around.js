// Where in a text a fault is: what comes before it, the word or the operator at it, and what comes after, on the fault's line.

const operator = /[()=!<>,&|~]/;

/** Columns count characters, not code units. @param {string} text @param {{line?: number, column?: number}} fault */
export function around(text, fault) {
  const lines = text.split('\n');
  const chars = [...lines[Math.min(Math.max((fault.line || 1) - 1, 0), lines.length - 1)]];
  const at = Math.min(Math.max((fault.column || 1) - 1, 0), chars.length);
  const signs = operator.test(chars[at] || '');
  let end = at;
  while (end < chars.length && operator.test(chars[end]) === signs && !/\s/.test(chars[end])) end++;
  return { before: chars.slice(0, at).join(''), at: chars.slice(at, end).join('') || ' ', after: chars.slice(end).join('') };
}

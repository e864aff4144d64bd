// The members of a JSON object as they were written. JSON.parse would round a number that does not fit a double.
export const space = /[ \t\n\r]/;

/** Where the value that begins at i ends. @param {string} s @param {number} i */
export function endOf(s, i) {
  if (s[i] === '"') return stringEnd(s, i);
  if (s[i] !== '{' && s[i] !== '[') {
    while (i < s.length && !space.test(s[i]) && s[i] !== ',' && s[i] !== '}' && s[i] !== ']') i++;
    return i;
  }
  for (let depth = 0; i < s.length; i++) {
    const c = s[i];
    if (c === '"') i = stringEnd(s, i) - 1;
    else if (c === '{' || c === '[') depth++;
    else if ((c === '}' || c === ']') && --depth === 0) return i + 1;
  }
  return i;
}

/** @param {string} s @param {number} i of the opening quote */
function stringEnd(s, i) {
  for (i++; i < s.length && s[i] !== '"'; i++) if (s[i] === '\\') i++;
  return i + 1;
}

/** The members of an object, each as the text of its value. Empty where s is not an object. @param {string} s */
export function members(s) {
  /** @type {Record<string, string>} */
  const out = Object.create(null);
  let i = 0;
  const blank = () => { while (i < s.length && space.test(s[i])) i++; };
  blank();
  if (s[i] !== '{') return out;
  for (i++; ;) {
    blank();
    if (s[i] !== '"') return out;
    const key = stringEnd(s, i);
    if (key > s.length) return out;
    const name = JSON.parse(s.slice(i, key));
    i = key;
    blank();
    i++; // the colon
    blank();
    const end = endOf(s, i);
    out[name] = s.slice(i, end);
    i = end;
    blank();
    if (s[i] !== ',') return out;
    i++;
  }
}

/** The elements of a list, each as the text of its value. Empty where s is not a list. @param {string} s */
export function elements(s) {
  /** @type {string[]} */
  const out = [];
  let i = 0;
  const blank = () => { while (i < s.length && space.test(s[i])) i++; };
  blank();
  if (s[i] !== '[') return out;
  for (i++; ; i++) {
    blank();
    if (i >= s.length || s[i] === ']') return out;
    const end = endOf(s, i);
    out.push(s.slice(i, end));
    i = end;
    blank();
    if (s[i] !== ',') return out;
  }
}

// "My work": a label that this browser stores, by which executions are marked wherever work waits.

const key = 'pawl.mine';

/** A label in the API's form; '' if the text is not a label. @param {string} text */
export const labelOf = (text) => (/^[^=\s][^=]*=./.test(text.trim()) ? text.trim() : '');

/** The label that this browser keeps, '' for none. */
export function mine() {
  try {
    return labelOf(localStorage.getItem(key) || '');
  } catch {
    return ''; // storage may be disabled
  }
}

/** @param {string} label */
export function keepMine(label) {
  try {
    if (label) localStorage.setItem(key, label);
    else localStorage.removeItem(key);
  } catch {
    // it then lasts until the page is closed
  }
}

/** @param {Record<string, string>|undefined} labels @param {string} label */
export function isMine(labels, label) {
  const at = label.indexOf('=');
  return at > 0 && (labels || {})[label.slice(0, at)] === label.slice(at + 1);
}

/** A number as a place: 1st, 2nd, 3rd, 4th, 11th. @param {number} n */
export function ordinal(n) {
  const tens = n % 100;
  return `${n.toLocaleString('en')}${tens >= 11 && tens <= 13 ? 'th' : ['th', 'st', 'nd', 'rd'][n % 10] || 'th'}`;
}

/** Places in words, the first of them: "3rd and 17th", "1st, 2nd, 3rd and 4 more". @param {number[]} places */
export function placesText(places) {
  const words = places.map(ordinal);
  if (words.length > 5) return `${words.slice(0, 4).join(', ')} and ${(words.length - 4).toLocaleString('en')} more`;
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
}

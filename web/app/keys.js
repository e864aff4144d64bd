// Keys. The screen decides what a key does: it presses the first button, link or field whose aria-keyshortcuts names it. Rows
// (.open-row, with a checkbox where they can be marked) and the places of the sidebar are the same everywhere.
import { signal } from '../vendor/preact.js';
import { go } from './router.js';

/** The places of the sidebar, by the key after g. */
export const places = [
  { path: 'executions', also: ['compare'], name: 'Executions', key: 'e' },
  { path: 'batches', name: 'Batches', key: 'b' },
  { path: 'new', name: 'New', key: 'n' },
  { path: 'definitions', also: ['register'], name: 'Definitions', key: 'd' },
  { path: 'schedules', name: 'Schedules', key: 'c' },
  { path: 'questions', name: 'Questions', key: 'q' },
  { path: 'rules', also: ['signals', 'webhooks'], name: 'Rules', key: 'r' },
  { path: 'work', name: 'Work', key: 'w' },
  { path: 'server', name: 'Server', key: 's' },
];

/** The effect of a key, if nothing else on the screen shows it. */
export const said = signal('');
/** @type {ReturnType<typeof setTimeout>|undefined} */
let saying;

/** @param {string} text */
function say(text) {
  said.value = text;
  clearTimeout(saying);
  saying = setTimeout(() => { said.value = ''; }, 4000);
}

/** The elements that a key can press now, in the order of the document. @returns {{element: HTMLElement, key: string, name: string}[]} */
export const shortcuts = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll('[aria-keyshortcuts]')])
  .filter((e) => e.getClientRects().length > 0 && !(/** @type {any} */ (e).disabled))
  .map((element) => ({ element, key: element.getAttribute('aria-keyshortcuts') || '', name: (element.getAttribute('aria-label') || element.innerText || '').trim() }));

/** @param {string} key */
function press(key) {
  const found = shortcuts().find((s) => s.key === key)?.element;
  if (found?.matches('input')) found.focus();
  else found?.click();
  return !!found;
}

/** Whether the screen has a button for a key, also one that cannot be pressed just now. @param {string} key */
const ofScreen = (key) => document.querySelector(`[aria-keyshortcuts="${key}"]`) !== null;

let wanted = ''; // a key whose button appears with the mark that was just made

/** Whether a key was pressed before its button existed; the answer clears that. @param {string} key */
export function asked(key) {
  if (wanted !== key) return false;
  wanted = '';
  return true;
}

/** @param {string} id */
async function copyID(id) {
  await navigator.clipboard.writeText(id).then(() => say(`Copied ${id}`), () => say('This browser lets the page copy nothing here'));
}

const typing = 'textarea, select, input:not([type="checkbox"], [type="radio"], [type="range"])';

let after = '';

/**
 * @param {KeyboardEvent} e
 * @param {{help: () => void, search: () => void}} shown the dialogs over the screen
 */
export function pressed(e, shown) {
  const at = /** @type {HTMLElement} */ (e.target);
  if (document.querySelector('dialog[open]')) return;
  if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    shown.search();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  // The field of a dialog that was just closed keeps the focus until the next frame, although it is hidden.
  if (at.matches(typing) && at.getClientRects().length > 0) {
    if (e.key === 'Escape') at.blur();
    return;
  }
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('.open-row')]);
  const tr = document.activeElement?.closest('tr');
  const i = rows.findIndex((r) => r === document.activeElement || (tr && r.closest('tr') === tr));
  const box = /** @type {HTMLInputElement|null|undefined} */ (i < 0 ? null : rows[i].closest('tr')?.querySelector('input[type="checkbox"]'));
  wanted = '';
  const place = after === 'g' ? places.find((p) => p.key === e.key) : undefined;
  after = e.key === 'g' ? 'g' : '';
  if (place) go(place.path);
  else if (e.key === 'j' && rows.length > 0 && !ofScreen('j')) rows[Math.min(i + 1, rows.length - 1)].focus();
  else if (e.key === 'k' && rows.length > 0 && !ofScreen('k')) rows[Math.max(i - 1, 0)].focus();
  else if (e.key === 'x' && box) box.click();
  else if (e.key === 'w' && box) go(`executions/${box.value}/why`);
  else if (e.key === 'y' && box) copyID(box.value);
  else if (e.key === '?') shown.help();
  else if (press(e.key)) after = '';
  else if ((e.key === 'c' || e.key === 'r') && box && !box.checked) {
    wanted = e.key;
    box.click();
  } else return;
  e.preventDefault();
}

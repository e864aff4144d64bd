// The theme: the system's, or one that is chosen here and kept in this browser.
import { signal } from '../vendor/preact.js';

export const themes = ['auto', 'light', 'dark'];

const kept = () => {
  try {
    return localStorage.getItem('pawl.theme') || 'auto';
  } catch {
    return 'auto';
  }
};

export const theme = signal(kept());

/** @param {string} t */
export function setTheme(t) {
  theme.value = t;
  if (t === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
  try {
    localStorage.setItem('pawl.theme', t);
  } catch {
    // Without storage the choice lasts until the page is reloaded.
  }
}

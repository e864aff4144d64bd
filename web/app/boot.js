// The frame around the screens: navigation, login, keys, theme.
import { html, h, render, useEffect, useState, useErrorBoundary } from '../vendor/preact.js';
import { base, locked, offline, tokens, logIn, logOut, askSession } from './api.js';
import { route, go } from './router.js';
import { streaming } from './stream.js';
import { lazy } from './lazy.js';
import { trouble, dialog } from '../part/kit.js';
import { Executions } from '../screen/executions.js';

const places = [
  { path: 'executions', also: ['compare'], name: 'Executions', key: 'e', icon: html`<path d="M3 4h10M3 8h10M3 12h6" class="line" />` },
  { path: 'batches', name: 'Batches', key: 'b', icon: html`<path d="M3 3h3v3H3zM10 3h3v3h-3zM3 10h3v3H3zM10 10h3v3h-3z" class="line" />` },
  { path: 'new', name: 'New', key: 'n', icon: html`<path d="M8 3v10M3 8h10" class="line" />` },
  { path: 'definitions', also: ['register'], name: 'Definitions', key: 'd', icon: html`<rect x="2.5" y="2.5" width="4" height="4" rx="1" class="line" /><rect x="9.5" y="9.5" width="4" height="4" rx="1" class="line" /><path d="M6.5 4.5h3a2 2 0 0 1 2 2v3" class="line" />` },
  { path: 'schedules', name: 'Schedules', key: 'c', icon: html`<circle cx="8" cy="8" r="5.5" class="line" /><path d="M8 4.8V8l2.2 1.6" class="line" />` },
  { path: 'questions', name: 'Questions', key: 'q', icon: html`<path d="M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.9-1.1 1.8M8 12.6h.1" class="line" />` },
  { path: 'rules', also: ['signals', 'webhooks'], name: 'Rules', key: 'r', icon: html`<path d="M9 2.5 4 9h3.5L7 13.5 12 7H8.5z" class="line" />` },
  { path: 'work', name: 'Work', key: 'w', icon: html`<path d="M2.5 12.5v-4M6.2 12.5v-9M9.8 12.5v-6M13.5 12.5v-8" class="line" />` },
  { path: 'server', name: 'Server', key: 's', icon: html`<rect x="2.5" y="3" width="11" height="4" rx="1" class="line" /><rect x="2.5" y="9" width="11" height="4" rx="1" class="line" /><path d="M5 5h.1M5 11h.1" class="line" />` },
];

const Execution = lazy(() => import('../screen/execution.js').then((m) => m.Execution));
const Batches = lazy(() => import('../screen/batches.js').then((m) => m.Batches));
const Compare = lazy(() => import('../screen/compare.js').then((m) => m.Compare));
const New = lazy(() => import('../screen/new.js').then((m) => m.New));
const Definitions = lazy(() => import('../screen/definitions.js').then((m) => m.Definitions));
const Definition = lazy(() => import('../screen/definitions.js').then((m) => m.Definition));
const Register = lazy(() => import('../screen/register.js').then((m) => m.Register));
const Schedules = lazy(() => import('../screen/schedules.js').then((m) => m.Schedules));
const ScheduleScreen = lazy(() => import('../screen/schedules.js').then((m) => m.ScheduleScreen));
const Questions = lazy(() => import('../screen/questions.js').then((m) => m.Questions));
const QuestionScreen = lazy(() => import('../screen/questions.js').then((m) => m.QuestionScreen));
const Rules = lazy(() => import('../screen/rules.js').then((m) => m.Rules));
const RuleScreen = lazy(() => import('../screen/rules.js').then((m) => m.RuleScreen));
const Signals = lazy(() => import('../screen/signals.js').then((m) => m.Signals));
const SignalScreen = lazy(() => import('../screen/signals.js').then((m) => m.SignalScreen));
const Webhooks = lazy(() => import('../screen/webhooks.js').then((m) => m.Webhooks));
const WebhookScreen = lazy(() => import('../screen/webhooks.js').then((m) => m.WebhookScreen));
const Work = lazy(() => import('../screen/work.js').then((m) => m.Work));
const Server = lazy(() => import('../screen/server.js').then((m) => m.Server));

function screen() {
  const [first = 'executions', second] = route.value.parts;
  switch (first) {
    case 'executions': return second ? h(Execution, { id: second, key: second }) : h(Executions, {});
    case 'batches': return h(Batches, {});
    case 'compare': return h(Compare, {});
    case 'new': return h(New, {});
    case 'definitions': return second ? h(Definition, { name: second, key: second }) : h(Definitions, {});
    case 'register': return h(Register, { key: route.value.query.get('from') || '' });
    case 'schedules': return second ? h(ScheduleScreen, { name: second, key: second }) : h(Schedules, {});
    case 'questions': return second ? h(QuestionScreen, { id: second, key: second }) : h(Questions, {});
    case 'rules': return second ? h(RuleScreen, { name: second, key: second }) : h(Rules, {});
    case 'signals': return second ? h(SignalScreen, { id: second, key: second }) : h(Signals, {});
    case 'webhooks': return second ? h(WebhookScreen, { name: second, key: second }) : h(Webhooks, {});
    case 'work': return h(Work, {});
    case 'server': return h(Server, {});
    default: return html`<div class="empty"><h1>There is no such page</h1><p><a href="executions">Go to the executions</a></p></div>`;
  }
}

const themes = ['auto', 'light', 'dark'];

/** @param {string} t */
function setTheme(t) {
  if (t === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
  try {
    localStorage.setItem('pawl.theme', t);
  } catch {
    // Without storage the choice holds until the page is loaded again.
  }
}

const keptTheme = () => {
  try {
    return localStorage.getItem('pawl.theme') || 'auto';
  } catch {
    return 'auto';
  }
};
setTheme(keptTheme());

function Theme() {
  const [theme, set] = useState(keptTheme());
  const next = themes[(themes.indexOf(theme) + 1) % themes.length];
  return html`<button class="plain" type="button" onClick=${() => { setTheme(next); set(next); }}>Theme: ${theme}</button>`;
}

/** How the page and the server stand to each other. */
function Light() {
  const s = streaming.value;
  const [cls, words] = offline.value ? ['away', 'Reconnecting'] : s === 'paused' ? ['', 'Paused'] : s === 'connecting' ? ['', 'Connecting'] : ['live', 'Live'];
  return html`<div class=${`light ${cls}`} role="status"><span class="dot"></span>${words}</div>`;
}

function Login() {
  const [text, setText] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const enter = async (/** @type {Event} */ e) => {
    e.preventDefault();
    await logIn(text.trim()).catch(setError);
  };
  const open = location.protocol !== 'https:' && !/^(localhost|127\.|\[::1\])/.test(location.hostname);
  return html`<main class="login">
    <h1>Pawl asks for a token</h1>
    <form class="tight" onSubmit=${enter}>
      <div class="field"><label for="token">Token of this server</label>
        <input id="token" type="password" autocomplete="current-password" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} autofocus /></div>
      <p class="hint">The browser stays logged in for 12 hours. The token itself is not kept.</p>
      ${open ? html`<p class="note late">The connection is not encrypted: others on the network can read the token.</p>` : null}
      ${trouble(error)}
      <div><button class="primary" type="submit" disabled=${text.trim() === ''}>Open</button></div>
    </form>
  </main>`;
}

/** @param {{open: boolean, close: () => void}} p */
const help = ({ open, close }) => dialog({ name: 'Keys', open, close }, html`<div class="body"><h2>Keys</h2>
  <dl class="facts">
    <dt><kbd>g</kbd> <kbd>e</kbd></dt><dd>Executions; likewise <kbd>b</kbd> Batches, <kbd>n</kbd> New, <kbd>d</kbd> Definitions, <kbd>c</kbd> Schedules, <kbd>q</kbd> Questions, <kbd>r</kbd> Rules, <kbd>w</kbd> Work, <kbd>s</kbd> Server</dd>
    <dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>Next and previous row</dd>
    <dt><kbd>Enter</kbd></dt><dd>Open the row</dd>
    <dt><kbd>/</kbd></dt><dd>Filter</dd>
    <dt><kbd>.</kbd></dt><dd>Show what is new</dd>
    <dt><kbd>?</kbd></dt><dd>These keys</dd>
  </dl></div><footer><button type="button" onClick=${close}>Close</button></footer>`);

let after = '';

/** @param {KeyboardEvent} e @param {() => void} showHelp */
function keys(e, showHelp) {
  const at = /** @type {HTMLElement} */ (e.target);
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector('dialog[open]')) return;
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('.open-row')]);
  const i = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const place = after === 'g' ? places.find((p) => p.key === e.key) : undefined;
  after = e.key === 'g' ? 'g' : '';
  if (place) go(place.path);
  else if (e.key === 'j' && rows.length > 0) rows[Math.min(i + 1, rows.length - 1)].focus();
  else if (e.key === 'k' && rows.length > 0) rows[Math.max(i - 1, 0)].focus();
  else if (e.key === '/') /** @type {HTMLElement|null} */ (document.querySelector('[data-filter]'))?.focus();
  else if (e.key === '.') /** @type {HTMLElement|null} */ (document.querySelector('[data-newer]'))?.click();
  else if (e.key === '?') showHelp();
  else return;
  e.preventDefault();
}

/** @param {{children: any}} p */
function Boundary({ children }) {
  const [error, again] = useErrorBoundary();
  useEffect(() => again(), [route.value]);
  return error ? html`<div class="stack">${trouble(error)}<div><button type="button" onClick=${again}>Try again</button></div></div>` : children;
}

function Page() {
  const [asked, ask] = useState(false);
  useEffect(() => {
    const on = (/** @type {KeyboardEvent} */ e) => keys(e, () => ask(true));
    addEventListener('keydown', on);
    return () => removeEventListener('keydown', on);
  }, []);
  if (locked.value) return h(Login, {});
  const at = route.value.parts[0] || 'executions';
  return html`<div class="frame">
    <button class="skip" type="button" onClick=${() => document.getElementById('main')?.focus()}>Skip to the content</button>
    <header class="side">
      <a class="brand" href=${base}><img src=${iconURL} alt="" />Pawl</a>
      <nav aria-label="Pages"><ul>${places.map((p) => html`<li><a href=${p.path} aria-current=${at === p.path || p.also?.includes(at) ? 'page' : undefined}>
        <svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">${p.icon}</svg>${p.name}</a></li>`)}</ul></nav>
      <div class="foot">
        ${h(Light, {})}
        <div class="tight">${h(Theme, {})}<button class="plain" type="button" onClick=${() => ask(true)}>Keys <kbd>?</kbd></button>
        ${tokens.value ? html`<button class="plain" type="button" onClick=${logOut}>Log out</button>` : null}</div>
      </div>
    </header>
    <main class="main" id="main" tabindex="-1">${h(Boundary, { children: screen() })}</main>
    ${help({ open: asked, close: () => ask(false) })}
  </div>`;
}

const iconURL = /** @type {HTMLLinkElement|null} */ (document.querySelector('link[rel=icon]'))?.href || '';

askSession();
const at = document.getElementById('page');
if (at) render(h(Page, {}), at);

// The frame around the screens: navigation, login, keys, theme.
import { html, h, render, useEffect, useState, useErrorBoundary } from '../vendor/preact.js';
import { answered, archive, base, locked, inside, offline, tokens, logOut, askSession } from './api.js';
import { route } from './router.js';
import { places, pressed, said } from './keys.js';
import { streaming } from './stream.js';
import { clock, line } from './text.js';
import { theme, themes, setTheme } from './theme.js';
import { lazy } from './lazy.js';
import { trouble } from '../part/kit.js';
import { Executions } from '../screen/executions.js';

/** @type {Record<string, any>} */
const icons = {
  executions: html`<path d="M3 4h10M3 8h10M3 12h6" class="line" />`,
  batches: html`<path d="M3 3h3v3H3zM10 3h3v3h-3zM3 10h3v3H3zM10 10h3v3h-3z" class="line" />`,
  new: html`<path d="M8 3v10M3 8h10" class="line" />`,
  definitions: html`
    <rect x="2.5" y="2.5" width="4" height="4" rx="1" class="line" />
    <rect x="9.5" y="9.5" width="4" height="4" rx="1" class="line" />
    <path d="M6.5 4.5h3a2 2 0 0 1 2 2v3" class="line" />`,
  schedules: html`<circle cx="8" cy="8" r="5.5" class="line" /><path d="M8 4.8V8l2.2 1.6" class="line" />`,
  questions: html`<path d="M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.9-1.1 1.8M8 12.6h.1" class="line" />`,
  rules: html`<path d="M9 2.5 4 9h3.5L7 13.5 12 7H8.5z" class="line" />`,
  work: html`<path d="M2.5 12.5v-4M6.2 12.5v-9M9.8 12.5v-6M13.5 12.5v-8" class="line" />`,
  server: html`
    <rect x="2.5" y="3" width="11" height="4" rx="1" class="line" />
    <rect x="2.5" y="9" width="11" height="4" rx="1" class="line" />
    <path d="M5 5h.1M5 11h.1" class="line" />`,
  search: html`<circle cx="7" cy="7" r="4.5" class="line" /><path d="M10.5 10.5 13.5 13.5" class="line" />`,
};

const Execution = lazy(() => import('../screen/execution.js').then((m) => m.Execution));
const Batches = lazy(() => import('../screen/batches.js').then((m) => m.Batches));
const Compare = lazy(() => import('../screen/compare.js').then((m) => m.Compare));
const New = lazy(() => import('../screen/new.js').then((m) => m.New));
const Definitions = lazy(() => import('../screen/definitions.js').then((m) => m.Definitions));
const Definition = lazy(() => import('../screen/definition.js').then((m) => m.Definition));
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
    case 'new': return h(New, { key: JSON.stringify([route.value.query.get('from'), route.value.query.get('action')]) });
    case 'definitions': return second ? h(Definition, { name: second, key: second }) : h(Definitions, {});
    case 'register': return h(Register, { key: route.value.query.get('from') || '' });
    case 'schedules': return second ? h(ScheduleScreen, { name: second, key: second }) : h(Schedules, {});
    case 'questions': return second ? h(QuestionScreen, { id: second, key: second }) : h(Questions, {});
    case 'rules': return second ? h(RuleScreen, { name: second, key: second }) : h(Rules, {});
    case 'signals': return second ? h(SignalScreen, { id: second, key: second }) : h(Signals, {});
    case 'webhooks': return second ? h(WebhookScreen, { name: second, key: second }) : h(Webhooks, {});
    case 'work': return h(Work, {});
    case 'server': return h(Server, {});
    default: return html`<div class="panel empty"><h1>There is no such page</h1><p><a href="executions">Go to the executions</a></p></div>`;
  }
}

setTheme(theme.value);

function Theme() {
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length];
  return html`<button class="plain" type="button" onClick=${() => setTheme(next)}>Theme: ${theme.value}</button>`;
}

/** The state of the connection to the server. */
function Light() {
  const s = streaming.value;
  const [cls, words] = offline.value ? ['away', `Reconnecting, as of ${clock(new Date(answered).toISOString())}`] : s === 'paused' ? ['', 'Paused'] : s === 'connecting' ? ['', 'Connecting'] : ['live', 'Live'];
  return html`<div class=${`light ${cls}`} role="status"><span class="dot"></span>${words}</div>`;
}

const Login = lazy(() => import('./login.js').then((m) => m.Login));
const LoginAgain = lazy(() => import('./login.js').then((m) => m.LoginAgain), () => null);

const Help = lazy(() => import('../screen/help.js').then((m) => m.Help), () => null);
const Palette = lazy(() => import('../screen/palette.js').then((m) => m.Palette), () => null);

/** @param {{children: any}} p */
function Boundary({ children }) {
  const [error, again] = useErrorBoundary();
  useEffect(() => again(), [route.value]);
  return error ? html`
    <div class="stack">
      ${trouble(error)}
      <div><button type="button" onClick=${again}>Try again</button></div>
    </div>` : children;
}

/** The notice that the page shows a read-only archive. */
function Opened() {
  const a = archive.value;
  return a ? html`
    <p class="note late" role="note">
      An opened archive, read-only: exported from <span class="user">${line(a.from, 80)}</span> on ${clock(a.at)}
      . The server refuses every action.
    </p>` : null;
}

function Page() {
  // The dialog over the screen, and its number. The browser's event for a dialog that Escape closed can come after the key that opens the next: it closes only its own.
  const [over, setOver] = useState({ name: /** @type {''|'help'|'search'} */ (''), nth: 0 });
  const show = (/** @type {'help'|'search'} */ name) => setOver((o) => ({ name, nth: o.nth + 1 }));
  const close = () => setOver((o) => (o.nth === over.nth ? { name: '', nth: o.nth } : o));
  useEffect(() => {
    const on = (/** @type {KeyboardEvent} */ e) => pressed(e, { help: () => show('help'), search: () => show('search') });
    addEventListener('keydown', on);
    return () => removeEventListener('keydown', on);
  }, []);
  if (locked.value && !inside.value) return h(Login, {});
  const at = route.value.parts[0] || 'executions';
  return html`
    <div class="frame" hidden=${locked.value}>
      <button class="skip" type="button" onClick=${() => document.getElementById('main')?.focus()}>Skip to the content</button>
      <header class="side">
        <a class="brand" href=${base}><img src=${iconURL} alt="" />Pawl</a>
        <button class="find" type="button" onClick=${() => show('search')}>
          <svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">${icons.search}</svg>
          <span>Search</span>
          <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label="Pages">
          <ul>
            ${places.map((p) => html`
              <li>
                <a href=${p.path} aria-current=${at === p.path || p.also?.includes(at) ? 'page' : undefined}>
                  <svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">${icons[p.path]}</svg>
                  ${p.name}
                </a>
              </li>`)}
          </ul>
        </nav>
        <div class="foot">
          ${h(Light, {})}
          <div class="tight">
            ${h(Theme, {})}
            <button class="plain" type="button" onClick=${() => show('help')}>Keys <kbd>?</kbd></button>
            ${tokens.value
              ? html`<button class="plain" type="button" onClick=${() => void logOut().catch(() => {})}>Log out</button>`
              : null}
          </div>
        </div>
      </header>
      <main class="main" id="main" tabindex="-1">${h(Opened, {})}${h(Boundary, { children: screen() })}</main>
      ${over.name === 'help' ? h(Help, { key: over.nth, close }) : null}
      ${over.name === 'search' ? h(Palette, { key: over.nth, close, help: () => show('help') }) : null}
      <div class="said" role="status">${said.value}</div>
    </div>
    ${locked.value ? h(LoginAgain, {}) : null}`;
}

const iconURL = /** @type {HTMLLinkElement|null} */ (document.querySelector('link[rel=icon]'))?.href || '';

// Loaded early: when a login becomes necessary the server may have another version without these files.
askSession().then(() => { if (tokens.value) import('./login.js').then(() => {}, () => {}); });
const at = document.getElementById('page');
if (at) render(h(Page, {}), at);

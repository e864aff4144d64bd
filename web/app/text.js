// Words and numbers for people. Text of users and programs goes through plain(), so that control characters and
// marks of the writing direction are shown and not applied.

// Control characters but tab and line feed, line separators, annotations, and all that Unicode has without a picture: marks of direction, marks
// without a width, variants, and the tags in which a whole sentence can be hidden from a reader and not from a model. Two kinds have a purpose and stay
// where they have it: variants and joiners behind an emoji, and joiners behind a letter of a script that joins.
const hidden = /(?<=[\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}#*0-9])[\ufe0e\ufe0f](?=[^\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|$)|(?<=[\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d(?=\p{Extended_Pictographic})|(?<=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Mongolian}])[\u200c\u200d](?=\p{L})|([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb\p{Default_Ignorable_Code_Point}])/gu;

const ordinary = /^[\t\n\u0020-\u007e]*$/;

/** @param {string} c */
const byNumber = (c) => `⟨U+${(c.codePointAt(0) || 0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** @param {string} c */
const picture = (c) => {
  const n = c.codePointAt(0) || 0;
  if (n < 0x20) return String.fromCharCode(0x2400 + n);
  if (n === 0x7f) return '\u2421';
  return byNumber(c);
};

/** Replaces the hidden characters of a text; those with a purpose stay. @param {string} s @param {(c: string) => string} by */
const revealed = (s, by) => (ordinary.test(s) ? s : s.replace(hidden, (c, bad) => (bad === undefined ? c : by(c))));

/**
 * Text of a user with its invisible characters made visible. Line feeds and tabs stay.
 * @param {unknown} s
 */
export const plain = (s) => revealed(String(s ?? '').replace(/\r\n/g, '\n'), picture);

/** Text of a user with every control character as its number, including those for terminals. Line feeds stay. @param {string} s */
export const numbered = (s) => revealed(s, byNumber).replace(/\t/g, byNumber);

/** Text for the clipboard: a terminal would obey pasted control characters. @param {string} s */
export const copied = (s) => revealed(s, (c) => (c === '\r' ? c : ''));

// The first words of sentences of the server. Others begin with an id or a name, which is shown unchanged.
const beginnings = /^(a|about|action|an|at|attempt|being|event|it|its|more|no|none|nothing|of|one|ordered|paused|provisioning|put|queue|running|sleeping|slept|start|submit|task|the|waited|waiting|waits|what|when|whether|which|who|worker|workflow)\b/;

// Quoted text of users, or a time in UTC, whose date is left out within half a day of now.
const times = /"(?:[^"\\]|\\.)*"|\b(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d:\d\d)Z\b/g;

/** A sentence of the server, which terminals show after a name: capitalized, with times in the browser's zone. @param {string} text */
export function sentence(text, now = Date.now()) {
  const here = text.replace(times, (whole, day, time) => {
    const at = Date.parse(`${day || new Date(now).toISOString().slice(0, 10)}T${time}Z`);
    return Number.isNaN(at) ? whole : clock(new Date(day ? at : at + 864e5 * Math.round((now - at) / 864e5)).toISOString());
  });
  return beginnings.test(here) ? here[0].toUpperCase() + here.slice(1) : here;
}

/** Text of a user in one line, cut at n characters. @param {unknown} s @param {number} [n] */
export function line(s, n = 300) {
  const t = String(s ?? '');
  const cut = t.length > n ? t.slice(0, n) + '…' : t;
  return plain(cut).replace(/\n/g, '␊').replace(/\t/g, ' ');
}

/** A duration in at most two units. @param {number} ms */
export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) ms = 0;
  if (ms < 1) return ms === 0 ? '0 ms' : '< 1 ms';
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  if (s < 60) return '1 min 00 s';
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${pad(Math.floor(s % 60))} s`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h} h ${pad(m % 60)} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

/** How long ago, in one unit. @param {number} ms */
export function ago(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 5) return 'just now';
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

const pad = (/** @type {number} */ n) => String(n).padStart(2, '0');

/** Bytes in powers of 1000, as in most limits. @param {number} n */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  let unit = -1;
  do {
    n /= 1000;
    unit++;
  } while (n >= 999.5 && unit < 3);
  return `${n < 9.95 ? n.toFixed(1) : Math.round(n)} ${['KB', 'MB', 'GB', 'TB'][unit]}`;
}

const grouped = new Intl.NumberFormat('en-US');

/** @param {number} n */
export const number = (n) => grouped.format(n);

/** @param {number} n @param {string} one @param {string} [many] */
export const count = (n, one, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`;

/** The time of day, with the date if it is not today. @param {string|undefined} at @param {boolean} [fine] with milliseconds */
export function clock(at, fine = false) {
  if (!at) return '–';
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return line(at);
  const day = d.toDateString() === new Date().toDateString() ? '' : `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} `;
  return `${day}${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}${fine ? '.' + String(d.getMilliseconds()).padStart(3, '0') : ''}`;
}

/** Milliseconds of a Go duration such as 1m30s, or of a number of seconds; NaN where it is neither. @param {unknown} d */
export function goDuration(d) {
  if (typeof d === 'number') return d * 1000;
  if (typeof d !== 'string' || d === '') return NaN;
  /** @type {Record<string, number>} */
  const units = { ns: 1e-6, us: 1e-3, 'µs': 1e-3, ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };
  let sum = 0;
  const rest = d.replace(/(\d+(?:\.\d+)?)(ns|us|µs|ms|d|h|m|s)/g, (_, n, u) => {
    sum += Number(n) * units[u];
    return '';
  });
  return rest === '' ? sum : NaN;
}

/** The end of an id: its beginning is a time, which many ids share. @param {string} id */
export const shortID = (id) => line(id.length > 12 ? '…' + id.slice(-8) : id);

/** A figure of the server in the unit that its name ends with: _timestamp_seconds, _seconds or _bytes; else a count. @param {string} name @param {number} n */
export function figure(name, n) {
  if (name.endsWith('_timestamp_seconds')) return clock(new Date(n * 1000).toISOString());
  if (name.endsWith('_seconds')) return duration(n * 1000);
  return name.endsWith('_bytes') ? bytes(n) : number(n);
}

// The valid parts of a code result: a worker wrote it, and the server stores outputs unchecked.

/** @typedef {import('../types').CodeResult} CodeResult */

// Forms: a member is kept where it is of the type that it has here. A list has one element, the form of all of its elements.
const compiled = { verdict: '', stdout: '', stderr: '' };
const kase = {
  name: '', verdict: '', message: '', mismatch: { line: 0, path: '', got: '', want: '' }, stdout: '', stdout_base64: '', stdout_truncated: false,
  stderr: '', stderr_base64: '', stderr_truncated: false, transcript: [{ by: '', text: '', base64: '', omitted: 0 }],
  stdout_bytes: 0, stderr_bytes: 0, wall_ms: 0, cpu_ms: 0, peak_memory_bytes: 0, uncompared: false,
};
const form = {
  verdict: '', exit_code: 0, signal: '', reason: '', enforcement: '', runtime: '', result_error: '', wall_ms: 0, cpu_ms: 0, peak_memory_bytes: 0,
  stdout: '', stdout_base64: '', stdout_bytes: 0, stdout_truncated: false, stderr: '', stderr_base64: '', stderr_bytes: 0, stderr_truncated: false,
  limits: { wall: '', cpu: '', memory: 0, output: 0, pids: 0, disk: 0 }, limits_hit: [''], compile: compiled, cases: [kase], summary: { total: 0, passed: 0 }, files: [{ path: '', size: 0, mode: '' }], refused: [''],
};

/** The part of a value that matches a form; undefined if it has another type. @param {any} v @param {any} f @returns {any} */
function shaped(v, f) {
  if (Array.isArray(f)) return Array.isArray(v) ? v.map((e) => shaped(e, f[0])).filter((e) => e !== undefined) : undefined;
  if (typeof f !== 'object') return typeof v === typeof f ? v : undefined;
  if (typeof v !== 'object' || v === null || Array.isArray(v)) return undefined;
  /** @type {Record<string, any>} */
  const out = {};
  for (const k of Object.keys(f)) {
    const member = Object.hasOwn(v, k) ? shaped(v[k], f[k]) : undefined;
    if (member !== undefined) out[k] = member;
  }
  return out;
}

/**
 * The result of an execution of code; null without one.
 * @param {{kind?: string, output?: unknown}} x
 * @returns {CodeResult|null}
 */
export function codeResult(x) {
  const r = x.kind === 'code' ? shaped(x.output, form) : undefined;
  if (r?.verdict === undefined) return null;
  r.stdout ??= '';
  r.stderr ??= '';
  // A case and a file are recognized by a text that each must have.
  r.cases = (r.cases || []).filter((/** @type {any} */ c) => c.name !== undefined)
    .map((/** @type {any} */ c) => ({ ...c, verdict: c.verdict ?? '', mismatch: c.mismatch?.want === undefined || c.mismatch.got === undefined ? undefined : c.mismatch }));
  r.files = (r.files || []).filter((/** @type {any} */ f) => f.path !== undefined).map((/** @type {any} */ f) => ({ ...f, size: f.size ?? 0 }));
  if (r.summary && (r.summary.total === undefined || r.summary.passed === undefined)) delete r.summary;
  if (r.compile) r.compile = { ...r.compile, verdict: r.compile.verdict ?? '' };
  return r;
}

// How the cases of an evaluation ended, out of its digest: one letter for each.

/** @typedef {import('../types').Execution} Execution */
/** @typedef {Map<string, string[]>} Names of cases, by what a digest calls them */

/** The verdict of each letter. @type {Record<string, string>} */
export const letters = {
  P: 'ok', U: 'ok', W: 'wrong_answer', T: 'timeout', C: 'cpu_timeout', M: 'oom', O: 'output_limit', X: 'nonzero_exit', S: 'signal', K: 'killed', E: 'checker_error', I: 'infra_error', N: 'skipped',
};

const unknown = 'other'; // a verdict without a letter

/** The name and the verdict of each case; none where there are no cases. @param {Execution} x @param {Names} names @returns {[string, string][]} */
export function casesOf(x, names) {
  const d = x.digest;
  if (!d) return [];
  const known = names.get(d.names || '');
  return [...d.cells].map((letter, i) => [known?.[i] ?? String(i + 1), letters[letter] || unknown]);
}

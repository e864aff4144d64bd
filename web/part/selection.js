// The executions that a list shows. The address holds the filters, and the API is queried by them.

/** The states that people filter by; each stands for those that it names. */
export const groups = [
  { name: 'waiting', status: ['requested', 'scheduled'], show: 'scheduled', word: 'Waiting' },
  { name: 'running', status: ['provisioning', 'running'], show: 'running', word: 'Running' },
  { name: 'completed', status: ['completed'], show: 'completed', word: 'Completed' },
  { name: 'failed', status: ['failed'], show: 'failed', word: 'Failed' },
  { name: 'timed_out', status: ['timed_out'], show: 'timed_out', word: 'Timed out' },
  { name: 'cancelled', status: ['cancelled'], show: 'cancelled', word: 'Cancelled' },
];

/** The address's selection as parameters of the API. @param {URLSearchParams} q */
export function selected(q) {
  const chosen = q.getAll('status');
  return {
    status: groups.filter((g) => chosen.includes(g.name)).flatMap((g) => g.status),
    action: q.get('action') || undefined,
    workflow: q.get('workflow') || undefined,
    rerun_of: q.get('rerun_of') || undefined,
    retry_of: q.get('retry_of') || undefined,
    verdict: q.getAll('verdict'),
    label: q.getAll('label'),
    since: q.get('since') || undefined,
    until: q.get('until') || undefined,
    where: q.get('where') || undefined,
    top_level: q.get('tasks') !== 'true' && !q.get('workflow'),
  };
}

/** The filters that are shown as chips, each with what the address has without it. @param {URLSearchParams} q */
export const chipsOf = (q) => [...q.getAll('label').map((v) => ['label', v]), ...q.getAll('verdict').map((v) => ['verdict', v]),
  ...['since', 'until', 'workflow', 'rerun_of', 'retry_of'].filter((k) => q.get(k)).map((k) => [k, String(q.get(k))])]
  .map(([key, value]) => ({ key, value, without: { [key]: q.getAll(key).filter((o) => o !== value) } }));

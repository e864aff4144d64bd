import test from 'node:test';
import assert from 'node:assert/strict';
import { groups, selected, chipsOf } from '../part/selection.js';

// The router reads and writes the address, and nothing else of a browser.
const at = /** @type {any} */ ({ href: 'http://pawl.example/x/ui/executions' });
Object.assign(globalThis, {
  location: at, addEventListener: () => {}, scrollTo: () => {},
  document: { baseURI: 'http://pawl.example/x/ui/', querySelector: () => null, addEventListener: () => {} },
  history: { pushState: (/** @type {any} */ _, /** @type {string} */ __, /** @type {string} */ to) => { at.href = to; }, replaceState: (/** @type {any} */ _, /** @type {string} */ __, /** @type {string} */ to) => { at.href = to; } },
});
const { route, go, withQuery } = await import('../app/router.js');
const { query } = await import('../app/api.js');

/** Numbers that are the same in each run. @param {number} seed */
const drawing = (seed) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};

const texts = ['a=b', 'team=docs & ops', 'k=<b>', 'x=100%', 'a=b=c', 'ü=日本', 'q=a+b', 'h=#1', 's=?x', 'p=../..', '__proto__=1', 'n=a\nb', 'e=', 'm=%2F'];
const asked = () => query(selected(route.value.query));

test('what the filters write into the address is what the API is asked for, also after loading it again, in another order, and with filters taken away', () => {
  const draw = drawing(7);
  const pick = (/** @type {any[]} */ all) => all[Math.floor(draw() * all.length)];
  for (let round = 0; round < 300; round++) {
    go('executions', { replace: true });
    assert.equal(asked(), '?top_level=true');
    /** @type {Record<string, string[]>} */
    const model = {};
    for (let n = Math.floor(draw() * 9); n > 0; n--) {
      const key = pick(['status', 'label', 'verdict', 'action', 'where', 'since', 'workflow', 'tasks', 'rerun_of']);
      const value = key === 'status' ? pick(groups).name : key === 'tasks' ? 'true' : pick(texts);
      model[key] = ['status', 'label', 'verdict'].includes(key) ? [...new Set([...(model[key] || []), value])] : [value];
      go(withQuery({ [key]: model[key] }), { replace: true });
    }
    const want = new URLSearchParams(query({
      status: groups.filter((g) => model.status?.includes(g.name)).flatMap((g) => g.status), action: model.action, workflow: model.workflow, rerun_of: model.rerun_of,
      verdict: model.verdict, label: model.label, since: model.since, where: model.where, top_level: !model.tasks && !model.workflow,
    }));
    const same = (/** @type {string} */ what) => assert.deepEqual([...new URLSearchParams(asked())].map(String).sort(), [...want].map(String).sort(), `${what}: ${at.href}`);
    same('written');
    go(at.href, { replace: true }); // as a browser reads it that is given the address
    same('read');
    const shuffled = [...new URL(at.href).searchParams].sort(() => draw() - 0.5);
    go('executions?' + new URLSearchParams(shuffled), { replace: true });
    same('in another order');
    for (let chips = chipsOf(route.value.query); chips.length > 0; chips = chipsOf(route.value.query)) {
      const chip = pick(chips);
      const before = [...route.value.query].map(String);
      go(withQuery(chip.without), { replace: true });
      assert.deepEqual([...route.value.query].map(String).sort(), before.filter((p) => p !== `${chip.key},${chip.value}`).sort());
    }
    go(withQuery({ status: [], action: undefined, where: undefined, tasks: undefined }), { replace: true });
    assert.equal(asked(), '?top_level=true');
    assert.equal(at.href, 'http://pawl.example/x/ui/executions');
  }
});

// A large graph with each of its chains as one box. A chain is a run of tasks each of which needs the one before it alone, which nothing else needs.

/** @typedef {import('./graph.js').Layout} Layout */
/** @typedef {import('./graph.js').Edge} Edge */

const least = 3; // tasks of a chain that is folded

/** The chains of a graph, each with at least so many tasks. @param {Layout} l @returns {string[][]} */
function chainsOf(l) {
  /** @type {Map<string, string[]>} */
  const needs = new Map(l.nodes.map((n) => [n.task, []]));
  /** @type {Map<string, string[]>} */
  const needed = new Map(l.nodes.map((n) => [n.task, []]));
  for (const e of l.edges) {
    needs.get(e.to)?.push(e.from);
    needed.get(e.from)?.push(e.to);
  }
  const next = (/** @type {string} */ task) => {
    const after = needed.get(task) || [];
    return after.length === 1 && needs.get(after[0])?.length === 1 ? after[0] : '';
  };
  const followers = new Set(l.nodes.map((n) => next(n.task)));
  return l.nodes.filter((n) => !followers.has(n.task)).map((n) => {
    const chain = [n.task];
    for (let task = next(n.task); task; task = next(task)) chain.push(task);
    return chain;
  }).filter((c) => c.length >= least);
}

/** Takes the columns without a box out of the plane. @param {Layout} l @param {number[]} columns where they begin, from the left */
function closed(l, columns) {
  const taken = new Set(l.nodes.map((n) => n.x));
  const gaps = columns.map((x, i) => ({ x, w: (columns[i + 1] ?? l.width) - x })).filter((g) => !taken.has(g.x));
  /** @type {Map<number, number>} */
  const known = new Map(); // many points have one x
  const at = (/** @type {number} */ x) => {
    let to = known.get(x);
    if (to === undefined) known.set(x, to = gaps.reduce((n, g) => n - Math.max(0, Math.min(x - g.x, g.w)), x));
    return to;
  };
  return {
    width: at(l.width), height: l.height, nodes: l.nodes.map((n) => ({ ...n, x: at(n.x) })),
    edges: l.edges.map((e) => ({ ...e, points: e.points.map((p) => ({ x: at(p.x), y: p.y })) })),
  };
}

/**
 * The graph with a box for each chain in the place of its first task. The chain that has the task which is kept is drawn whole.
 * @param {Layout} l @param {string} [keep]
 * @returns {{layout: Layout, chains: Map<string, string[]>}} chains: the tasks of each, by the first
 */
export function folded(l, keep) {
  const chains = chainsOf(l).filter((c) => !c.includes(keep || ''));
  const boxes = new Map(l.nodes.map((n) => [n.task, n]));
  /** @type {Map<string, string>} */
  const heads = new Map(chains.flatMap((c) => c.map((task) => [task, c[0]])));
  /** @type {Edge[]} */
  const edges = [];
  for (const e of l.edges) {
    const from = heads.get(e.from);
    if (from !== undefined && from === heads.get(e.to)) continue;
    const head = from === undefined || from === e.from ? undefined : boxes.get(from);
    const tail = boxes.get(e.from);
    edges.push(!head || !tail ? e : { ...e, from: head.task, points: [{ x: head.x + head.w, y: head.y + head.h / 2 }, { x: tail.x, y: tail.y + tail.h / 2 }, ...e.points] });
  }
  const nodes = l.nodes.filter((n) => (heads.get(n.task) ?? n.task) === n.task);
  const columns = [...new Set(l.nodes.map((n) => n.x))].sort((a, b) => a - b);
  return { layout: closed({ ...l, nodes, edges }, columns), chains: new Map(chains.map((c) => [c[0], c])) };
}

const gravest = ['failed', 'timed_out', 'cancelled', 'running', 'provisioning', 'scheduled', 'requested'];

/** The task of a chain that tells most: one that failed or is under way, else the last that has ended, else the first. @param {string[]} chain @param {(task: string) => string|undefined} status */
export function telling(chain, status) {
  for (const s of gravest) {
    const found = chain.find((task) => status(task) === s);
    if (found) return found;
  }
  return chain.findLast((task) => status(task) === 'completed') || chain[0];
}

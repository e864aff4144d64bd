// A graph with each of its groups of equal siblings, and where it is large each of its chains, as one box. Equal siblings are tasks of one action which need
// the same, and which the same tasks need. A chain is a run of tasks each of which needs the one before it alone, which nothing else needs.

/** @typedef {import('./graph.js').Layout} Layout */
/** @typedef {import('./graph.js').Edge} Edge */

/** @typedef {{kind: 'siblings'|'chain', tasks: string[]}} Group what is one box */

const fewest = 6; // siblings that are folded: five of them are less high than the graph's frame
const least = 3; // tasks of a chain that is folded

/** The tasks that each task needs, and those that need it. @param {Layout} l */
function neighbours(l) {
  /** @type {Map<string, string[]>} */
  const needs = new Map(l.nodes.map((n) => [n.task, []]));
  /** @type {Map<string, string[]>} */
  const needed = new Map(l.nodes.map((n) => [n.task, []]));
  for (const e of l.edges) {
    needs.get(e.to)?.push(e.from);
    needed.get(e.from)?.push(e.to);
  }
  return { needs, needed };
}

/** The groups of equal siblings. @param {Layout} l @param {(task: string) => boolean} many whether a task has executions of its own to count @returns {Group[]} */
function siblingsOf(l, many) {
  const { needs, needed } = neighbours(l);
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const n of l.nodes) {
    if (many(n.task)) continue;
    const key = JSON.stringify([n.action, n.change, needs.get(n.task)?.sort(), needed.get(n.task)?.sort()]);
    const known = groups.get(key);
    if (known) known.tasks.push(n.task);
    else groups.set(key, { kind: 'siblings', tasks: [n.task] });
  }
  return [...groups.values()].filter((g) => g.tasks.length >= fewest);
}

/** The chains of a graph. @param {Layout} l @returns {Group[]} */
function chainsOf(l) {
  const { needs, needed } = neighbours(l);
  const changes = new Map(l.nodes.map((n) => [n.task, n.change]));
  const next = (/** @type {string} */ task) => {
    const after = needed.get(task) || [];
    return after.length === 1 && needs.get(after[0])?.length === 1 && changes.get(after[0]) === changes.get(task) ? after[0] : '';
  };
  const followers = new Set(l.nodes.map((n) => next(n.task)));
  return l.nodes.filter((n) => !followers.has(n.task)).map((n) => {
    const tasks = [n.task];
    for (let task = next(n.task); task; task = next(task)) tasks.push(task);
    return /** @type {Group} */ ({ kind: 'chain', tasks });
  }).filter((c) => c.tasks.length >= least);
}

/** Where a place on one axis is once some gaps of it are closed. @param {{from: number, size: number}[]} gaps */
function closing(gaps) {
  /** @type {Map<number, number>} */
  const known = new Map(); // many points have one x
  return (/** @type {number} */ at) => {
    let to = known.get(at);
    if (to === undefined) known.set(at, to = gaps.reduce((n, g) => n - Math.max(0, Math.min(at - g.from, g.size)), at));
    return to;
  };
}

/** Takes the columns and the rows without a box out of the plane. @param {Layout} l @param {Layout} before as it was laid out */
function closed(l, before) {
  const columns = [...new Set(before.nodes.map((n) => n.x))].sort((a, b) => a - b);
  const taken = new Set(l.nodes.map((n) => n.x));
  const x = closing(columns.map((from, i) => ({ from, size: (columns[i + 1] ?? before.width) - from })).filter((g) => !taken.has(g.from)));
  // Boxes of a column are at least as far apart as two of the whole graph.
  const rows = [...l.nodes].sort((a, b) => a.y - b.y);
  const apart = Math.min(...[...before.nodes].sort((a, b) => a.x - b.x || a.y - b.y).map((n, i, all) => (i > 0 && all[i - 1].x === n.x ? n.y - all[i - 1].y - all[i - 1].h : Infinity)), before.height);
  /** @type {{from: number, size: number}[]} */
  const empty = [];
  let end = -apart; // where the boxes so far end
  for (const n of rows) {
    if (n.y - end > apart) empty.push({ from: end + apart, size: n.y - end - apart });
    end = Math.max(end, n.y + n.h);
  }
  const y = closing([...empty, { from: end, size: Math.max(0, before.height - end) }]);
  return {
    width: x(l.width), height: y(l.height), nodes: l.nodes.map((n) => ({ ...n, x: x(n.x), y: y(n.y) })),
    edges: l.edges.map((e) => ({ ...e, points: e.points.map((p) => ({ x: x(p.x), y: y(p.y) })) })),
  };
}

/**
 * The graph with a box for each group: that of a chain in the place of its first task, that of siblings in the place of the one in their middle. The group that
 * has the task which is kept is drawn whole.
 * @param {Layout} l @param {string} [keep] @param {(task: string) => boolean} [many] whether a task stands for many executions, so that it is not a sibling
 * @param {number} [beyond] boxes beyond which chains are folded
 * @returns {{layout: Layout, groups: Map<string, Group>}} groups: by the task in whose place they are
 */
export function folded(l, keep, many = () => false, beyond = 400) {
  const siblings = siblingsOf(l, many);
  const left = siblings.reduce((n, g) => n - g.tasks.length + 1, l.nodes.length);
  const all = [...siblings, ...(left > beyond ? chainsOf(l) : [])].filter((g) => !g.tasks.includes(keep || ''));
  if (all.length === 0) return { layout: l, groups: new Map() };
  const boxes = new Map(l.nodes.map((n) => [n.task, n]));
  const y = (/** @type {string} */ task) => boxes.get(task)?.y || 0;
  const groups = new Map(all.map((g) => [g.kind === 'chain' ? g.tasks[0] : [...g.tasks].sort((a, b) => y(a) - y(b))[Math.floor((g.tasks.length - 1) / 2)], g]));
  const heads = new Map([...groups].flatMap(([head, g]) => g.tasks.map((task) => [task, head])));
  const stays = (/** @type {string} */ task) => (heads.get(task) ?? task) === task;
  /** @type {Edge[]} */
  const edges = [];
  for (const e of l.edges) {
    const chain = heads.get(e.from);
    const inChain = chain !== undefined && groups.get(chain)?.kind === 'chain';
    if (inChain ? chain === heads.get(e.to) : !stays(e.from)) continue;
    if (!stays(e.to)) continue;
    const head = inChain && chain !== e.from ? boxes.get(chain) : undefined;
    const tail = boxes.get(e.from);
    edges.push(!head || !tail ? e : { ...e, from: head.task, points: [{ x: head.x + head.w, y: head.y + head.h / 2 }, { x: tail.x, y: tail.y + tail.h / 2 }, ...e.points] });
  }
  return { layout: closed({ ...l, nodes: l.nodes.filter((n) => stays(n.task)), edges }, l), groups };
}

const gravest = ['failed', 'timed_out', 'cancelled', 'running', 'provisioning', 'scheduled', 'requested'];

/** The most informative task of a group: one that failed or is running, else the last that has ended, else the first. @param {string[]} tasks @param {(task: string) => string|undefined} status */
export function telling(tasks, status) {
  for (const s of gravest) {
    const found = tasks.find((task) => status(task) === s);
    if (found) return found;
  }
  return tasks.findLast((task) => status(task) === 'completed') || tasks[0];
}

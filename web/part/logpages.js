// Pages of a log, read from any place in both directions: one is in memory at a time, and overlaps with the previous one.

/** @typedef {import('../types').LogChunk} LogChunk */
/** @typedef {import('./lines.js').Place} Place */
/** @typedef {{chunks: LogChunk[], earlier: boolean, later: boolean}} Page earlier, later: whether there is more on that side */
/** @typedef {{before: string} | {after: string, earlier: boolean} | {at: Place}} Where before, after: chunks, as in 1.42 */
/** @typedef {(q: Record<string, string|number>) => Promise<import('../types').LogPage>} Get */

const size = 512 << 10; // bytes of a page: as many lines, where each is empty, are fewer than the page of the browser keeps
const around = 128 << 10; // on either side of a byte

/** The part before a chunk: the server may give it in several answers. @param {Get} get @param {string} before @param {number} limit */
async function back(get, before, limit) {
  let page = await get({ before, limit });
  const { chunks, prev_cursor: prev } = page;
  while (page.more) {
    page = await get({ after: page.next_cursor, before, limit });
    chunks.push(...page.chunks);
  }
  return { chunks, earlier: !!prev };
}

/** @param {Get} get @param {Where} where @returns {Promise<Page>} */
export async function pageOf(get, where) {
  if ('before' in where) return { ...(await back(get, where.before, size)), later: true };
  if ('after' in where) {
    const page = await get({ after: where.after, limit: size });
    return { chunks: page.chunks, earlier: where.earlier, later: page.more };
  }
  const { attempt, stream, at } = where.at;
  const [chunk] = (await get({ attempt, stream, offset: at, limit: 1 })).chunks;
  if (!chunk) return { chunks: [], earlier: false, later: false };
  const upTo = await back(get, `${chunk.attempt}.${chunk.seq + 1}`, around);
  const behind = await get({ after: `${chunk.attempt}.${chunk.seq}`, limit: around });
  return { chunks: [...upTo.chunks, ...behind.chunks], earlier: upTo.earlier, later: behind.more };
}

/**
 * Where the page before, or behind, the one that is held ends or begins, so that it has the lines that are seen, too. Where these are most of the page,
 * half of it is given up, so that one gets on.
 * @param {import('./lines.js').Lines} lines
 * @param {number} first line that is seen, as its index in all
 * @param {number} last
 * @param {boolean} earlier whether there is more before the page
 */
export function beside(lines, first, last, earlier) {
  const { marks, dropped } = lines;
  const half = marks.length >> 1;
  const above = marks.findIndex((m) => m.line > dropped + last + 1);
  const end = (above >= 0 && above <= half ? marks[above] : half > 0 && marks[half]) || { attempt: lines.last.attempt, seq: lines.last.seq + 1 };
  const below = marks.findLastIndex((m) => m.line <= dropped + first);
  const begin = Math.max(below, half);
  const from = marks[begin] || lines.last;
  return {
    before: { before: `${end.attempt}.${end.seq}` },
    after: { after: `${from.attempt}.${from.seq - 1}`, earlier: earlier || begin > 0 || dropped > 0 },
  };
}

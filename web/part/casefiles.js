// The cases of an evaluation, from files: NAME.in is the program's input, NAME.out or NAME.ans its expected output.

/** @typedef {{name?: string, stdin: string, expect: string}} Case */

/** The most bytes of all files together: for more than a form can hold well there is pawl eval --cases. */
const most = 8 << 20;

/** The text of a file, byte by byte: a form cannot hold others. @param {{name: string, arrayBuffer: () => Promise<ArrayBuffer>}|undefined} f */
async function textOf(f) {
  if (!f) return '';
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await f.arrayBuffer());
  } catch (e) {
    if (!(e instanceof TypeError)) throw e;
    throw new Error(`${f.name} is not a text in UTF-8: pawl eval --cases DIRECTORY sends it as it is`);
  }
}

/**
 * The cases that files make, in order of their names; numbers in them count as numbers. An error names the file that has no partner.
 * @param {{name: string, size: number, arrayBuffer: () => Promise<ArrayBuffer>}[]} files
 * @returns {Promise<Case[]>}
 */
export async function casesOf(files) {
  /** @type {Map<string, {in?: typeof files[0], out?: typeof files[0]}>} */
  const all = new Map();
  let size = 0;
  for (const f of files) {
    const at = /^(.+)\.(in|out|ans)$/.exec(f.name);
    if (!at) throw new Error(`${f.name}: the files of a case are NAME.in, and NAME.out or NAME.ans`);
    if ((size += f.size) > most) throw new Error(`The files have more than ${most >> 20} MB together: pawl eval --cases DIRECTORY sends them`);
    const c = all.get(at[1]) || {};
    all.set(at[1], c);
    const side = at[2] === 'in' ? 'in' : 'out';
    if (c[side]) throw new Error(`${at[1]} has two files of what is ${side === 'in' ? 'read' : 'expected'}`);
    if (side === 'out' && f.size === 0) throw new Error(`${f.name} is empty, which a form reads as "anything": pawl eval --cases DIRECTORY expects no output`);
    c[side] = f;
  }
  const names = [...all.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const lone = names.find((n) => !all.get(n)?.in);
  if (lone !== undefined) throw new Error(`${lone}.in is missing: there is only what is expected of it`);
  return Promise.all(names.map(async (name) => ({ name, stdin: await textOf(all.get(name)?.in), expect: await textOf(all.get(name)?.out) })));
}

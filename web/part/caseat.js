/** The case with a name: its given one, or its number. @param {any[]} cases @param {string} name */
export const caseAt = (cases, name) => cases.findIndex((c, i) => (c?.name || String(i + 1)) === name);

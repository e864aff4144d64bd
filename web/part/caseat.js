/** Which case of an input has a name: that which it was given, or its number. @param {any[]} cases @param {string} name */
export const caseAt = (cases, name) => cases.findIndex((c, i) => (c?.name || String(i + 1)) === name);

// Text above, below or smaller than the line: powers, notes' marks, cents, chemical formulas, readings.
function (parts) {
  const { dom } = parts;
  const RAISED = new Set(["sup", "sub", "rt"]);

  function enterRaised(writer, element, name, leaves) {
    if (name === "sup") {
      const mark = writer.mark();
      const isLinked = dom.query(element, "a") !== null || dom.name(dom.parent(element) ?? element) === "a";
      leaves.push(() => writer.rewrite(mark, (before, added) => raised(before, added, isLinked)));
    } else if (name === "sub") {
      const mark = writer.mark();
      leaves.push(() => writer.rewrite(mark, (before, added) => (/\p{L}$/u.test(before) || !/^\p{N}/u.test(added) ? added : `_${added}`)));
    } else if (name === "rt") {
      const mark = writer.mark();
      leaves.push(() => writer.rewrite(mark, (_, added) => `(${added.trim()})`));
    }
  }

  // 10 to the 6th is not 106, a note's mark is not part of the number before it, 1st stays as it is.
  function raised(before, added, isLinked) {
    const text = added.trim();
    if (!before || /\s$/.test(before) || /^\s/.test(added) || !/[\p{L}\p{N})\]]$/u.test(before)) {
      return isLinked && /^\p{N}+$/u.test(text) ? added.replace(text, `[${text}]`) : added;
    }
    if (isLinked && /^[\p{L}\p{N}]{1,4}$/u.test(text)) return `[${text}]`;
    if (/\p{Sc}\s?[\d,.\s]*\d$/u.test(before) && /^\d\d$/.test(text)) return `.${text}`;
    if (/^(st|nd|rd|th|e|er|re|ère|ème|de|te|ste|o|a|º|ª|™|®|tm|sm|r)$/i.test(text) || !/^[-+\u2212]?[\p{L}\p{N}]/u.test(text)) return added;
    return /^[-+\u2212]?[\p{L}\p{N}.,]+$/u.test(text) ? `^${text}` : `^(${text})`;
  }

  return { isRaised: (name) => RAISED.has(name), enterRaised };
}

// Text above, below or smaller than the line: powers, notes' marks, cents, chemical formulas, readings.
function (parts) {
  const { dom } = parts;
  const RAISED = new Set(["sup", "sub", "rt"]);
  const PLACES = { super: "sup", sub: "sub" };
  const STROKE = /^\s*[/\u2044\u2215]\s*$/;

  // Where an element stands beside the line, by its name or by its style; empty where it is on the line.
  const placeOf = (name, style) => (RAISED.has(name) ? name : PLACES[style.verticalAlign] ?? "");

  function enterRaised(writer, element, place, leaves) {
    if (!place) return;
    const mark = writer.mark();
    const isNamed = RAISED.has(dom.name(element));
    // Words in another place are badges and the like.
    const change = (before, added) => (isNamed || /^[-+\u2212]?\p{N}+$/u.test(added.trim()) ? changeTo(place, element, before, added) : added);
    leaves.push(() => writer.rewrite(mark, change));
  }

  function changeTo(place, element, before, added) {
    if (place === "rt") return `(${added.trim()})`;
    if (place === "sub") return /[\p{L}/\u2044\u2215]$/u.test(before) || !/^\p{N}/u.test(added) ? added : `_${added}`;
    if (/\p{N}$/u.test(before) && isNumerator(element)) return ` ${added.trim()}`;
    const isLinked = dom.query(element, "a") !== null || dom.name(dom.parent(element) ?? element) === "a";
    return raised(before, added, isLinked);
  }

  // Of a fraction: a stroke follows, and a lowered number. 3 1/2 is neither 31/2 nor a power.
  function isNumerator(element) {
    const stroke = dom.next(element);
    const below = stroke && dom.type(stroke) === 3 && STROKE.test(dom.data(stroke)) ? dom.next(stroke) : null;
    return below !== null && dom.type(below) === 1 && placeOf(dom.name(below), getComputedStyle(below)) === "sub";
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

  return { placeOf, enterRaised };
}

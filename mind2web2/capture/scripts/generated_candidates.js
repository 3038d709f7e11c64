// Tells cheaply which elements can have `::before` or `::after` text at all, from the rules of the style sheets: to
// ask for two more computed styles of each element would double the time that reading a page takes.
function (parts) {
  const { dom } = parts;
  const MAX_RULES = 50_000;
  const keys = new Set(["q"]); // the browser's own rule for quotations
  let isEveryone = dom.compatMode(document) === "BackCompat"; // where letter case does not matter to selectors
  let rules = 0;

  // The class, id or tag that an element has to have for the selector's last part; null where there is none.
  function keyOf(selector) {
    const last = /[^\s>+~]*$/.exec(selector.replace(/\[[^\]]*\]|::?[\w-]+\([^()]*(?:\([^()]*\)[^()]*)*\)|::?[\w-]+/g, "").trim())[0];
    if (/[()\\&|]/.test(last)) return null;
    const named = /[.#][^.#]+/.exec(last);
    if (named) return named[0];
    return /^[a-z][\w-]*$/i.test(last) ? last.toLowerCase() : null;
  }

  function addRule(rule) {
    if (++rules > MAX_RULES) isEveryone = true;
    const { selectorText, style } = rule;
    if (selectorText && /:(before|after)/.test(selectorText) && !/^(|none|normal|""|'')$/.test(style.content)) {
      const targets = selectorText.split(",").filter((selector) => /:(before|after)/.test(selector));
      // A comma within parentheses leaves halves that no key is to be found in.
      const found = targets.map((selector) => (/^[^()]*$|^[^()]*\([^()]*\)[^()]*$/.test(selector) ? keyOf(selector) : null));
      if (found.includes(null)) isEveryone = true;
      for (const key of found) keys.add(key);
    }
    if (rule.cssRules?.length) addRules(rule.cssRules);
    if (rule.styleSheet) addSheet(rule.styleSheet);
  }

  function addRules(list) {
    for (let i = 0; i < list.length && !isEveryone; i++) addRule(list[i]);
  }

  function addSheet(sheet) {
    try {
      addRules(sheet.cssRules);
    } catch {
      isEveryone = true; // a sheet of another site, whose rules are not shown
    }
  }

  for (const sheet of dom.styleSheets(document)) addSheet(sheet);
  for (const sheet of dom.adoptedSheets(document)) addSheet(sheet);

  return function (element, name) {
    if (isEveryone || keys.has(name)) return true;
    const id = dom.attribute(element, "id");
    if (id && keys.has(`#${id}`)) return true;
    const classes = dom.attribute(element, "class");
    if (!classes) return false;
    if (!/\s/.test(classes)) return keys.has(`.${classes}`);
    return classes.split(/\s+/).some((one) => keys.has(`.${one}`));
  };
}

// Ways to the DOM that the page's markup cannot bend: `<form><input name="childNodes">` hides a form's own
// properties in every world, so each is taken from its prototype and called on the node.
function () {
  const uncurried = (method) => Function.prototype.call.bind(method);
  const getter = (type, name) => uncurried(Object.getOwnPropertyDescriptor(type.prototype, name).get);
  const method = (type, name) => uncurried(type.prototype[name]);

  // A word joiner or a tag character can be put between any two letters, or carry a text of its own; none is seen.
  const UNSEEN = new RegExp(
    "[\\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
      "\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\ue000-\\uf8ff" +
      "\\u{e0000}-\\u{e0fff}\\u{f0000}-\\u{10ffff}]|[\\ud800-\\udfff]",
    "gu",
  );
  // Joiners shape Arabic, Indic and emoji text; between Latin letters they only keep words from being found.
  const IDLE_JOINER = /(?<![^\u0000-\u024f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\u0000-\u024f])/gu;
  const PLAIN = /^[\t\n\r\f -~]*$/;

  return {
    parent: getter(Node, "parentNode"),
    first: getter(Node, "firstChild"),
    next: getter(Node, "nextSibling"),
    type: getter(Node, "nodeType"),
    textContent: getter(Node, "textContent"),
    contains: method(Node, "contains"),
    data: getter(CharacterData, "data"),
    name: getter(Element, "localName"),
    namespace: getter(Element, "namespaceURI"),
    openRoot: getter(Element, "shadowRoot"),
    attribute: method(Element, "getAttribute"),
    hasAttribute: method(Element, "hasAttribute"),
    query: method(Element, "querySelector"),
    queryAll: method(Element, "querySelectorAll"),
    box: method(Element, "getBoundingClientRect"),
    scrollWidth: getter(Element, "scrollWidth"),
    innerWidth: getter(Element, "clientWidth"),
    outerWidth: getter(HTMLElement, "offsetWidth"),
    outerHeight: getter(HTMLElement, "offsetHeight"),
    innerHeight: getter(Element, "clientHeight"),
    innerText: getter(HTMLElement, "innerText"),
    host: getter(ShadowRoot, "host"),
    assigned: method(HTMLSlotElement, "assignedNodes"),
    root: getter(Document, "documentElement"),
    body: getter(Document, "body"),
    styleSheets: getter(Document, "styleSheets"),
    adoptedSheets: getter(Document, "adoptedStyleSheets"),
    compatMode: getter(Document, "compatMode"),
    title: getter(Document, "title"),
    getter,

    isClear: (colour) => /^rgba\(.*, 0\)$|\/ 0\)$/.test(colour),

    // A page can name an element `closedRoots`, which is then found where our own map would be.
    ownMap: (name) => (Object.hasOwn(globalThis, name) && globalThis[name] instanceof Map ? globalThis[name] : new Map()),

    clean(text) {
      if (PLAIN.test(text)) return text;
      const seen = text.replace(UNSEEN, "");
      return seen.replace(/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g, " ").replace(/[\u2028\u2029\u0085]/g, "\n")
        .replace(IDLE_JOINER, "");
    },

    oneLine(text) {
      return this.clean(text ?? "").replace(/\s+/g, " ").trim();
    },
  };
}

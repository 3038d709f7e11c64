// How many elements show more than their children do, or not the child that they should: they may have a shadow root
// that only the page itself can open. They are kept as `globalThis.suspectedHosts`, and
// the elements of frames as `globalThis.pageFrames`.
// Properties that a form's fields may shadow are read through their prototypes.
() => {
  const known = Object.hasOwn(globalThis, "closedRoots") ? globalThis.closedRoots : new Map();
  const suspects = [];
  const custom = []; // what is made to have such roots
  const frames = [];
  const MAX_ASKED = 10_000; // to ask each of very many elements for its boxes takes longer than the answer is worth
  const MAX_SUSPECTS = 1000; // each is asked for by a message of its own
  const HOSTS = /^(article|aside|blockquote|body|div|footer|h[1-6]|header|main|nav|p|section|span)$/;
  const rootOf = Object.getOwnPropertyDescriptor(Element.prototype, "shadowRoot").get;
  const inside = DocumentFragment.prototype.querySelectorAll;
  const range = new Range();
  // A host of fixed boxes has no height, but is met at some place of the window.
  let met = null;
  const isMet = (element) => {
    const places = [0.1, 0.5, 0.9].flatMap((x) => [0.04, 0.5, 0.96].map((y) => [x * innerWidth, y * innerHeight]));
    met ??= new Set(places.map(([x, y]) => Document.prototype.elementFromPoint.call(document, x, y)));
    return met.has(element);
  };
  const isDropped = (element) => {
    const text = element.firstChild;
    const child = element.firstElementChild;
    if (text?.nodeType === 3 && /\S/.test(text.data)) {
      range.selectNode(text);
      return range.getClientRects().length === 0;
    }
    if (child === null || Element.prototype.getClientRects.call(child).length > 0) return false;
    return !/^(none|contents)$/.test(getComputedStyle(child).display);
  };
  // Something without content of its own that takes up room, other than by the spaces in it.
  const isFilled = (element) => {
    const text = element.firstChild;
    if (element.offsetHeight === 0 || element.offsetWidth === 0) return isMet(element);
    if (text?.nodeType !== 3) return true;
    range.selectNode(text);
    return range.getClientRects().length === 0;
  };
  let left = MAX_ASKED;
  // Coloured code has spans by the thousand.
  const waiting = [Document.prototype.querySelectorAll.call(document, ":not(pre span)")];
  while (waiting.length) {
    for (const element of waiting.pop()) {
      const root = rootOf.call(element) ?? known.get(element);
      if (root) {
        waiting.push(inside.call(root, "*"));
        continue;
      }
      if (element instanceof HTMLFormElement) continue;
      const name = element.localName;
      if (/^(i?frame|object|embed|fencedframe)$/.test(name)) frames.push(element);
      if (name.includes("-")) { custom.push(element); continue; }
      if (!HOSTS.test(name)) continue;
      const isBare = !element.firstElementChild && !element.textContent.trim();
      if (isBare ? isFilled(element) : left-- > 0 && isDropped(element) && (element.offsetHeight > 0 || isMet(element))) suspects.push(element);
    }
  }
  globalThis.suspectedHosts = [...custom, ...suspects].slice(0, MAX_SUSPECTS);
  globalThis.pageFrames = frames;
  return globalThis.suspectedHosts.length;
}

// Functions that our other scripts share, kept as `globalThis.pageTools`: visible text, copies, presses.
// Properties that a form's fields or a named image may shadow are read through their prototypes.
function () {
  const uncurried = (own) => Function.prototype.call.bind(own);
  const getter = (prototype, name) => uncurried(Object.getOwnPropertyDescriptor(prototype, name).get);
  const method = (prototype, name) => uncurried(prototype[name]);
  const parentNode = getter(Node.prototype, "parentNode");
  const isConnected = getter(Node.prototype, "isConnected");
  const childNodes = getter(Node.prototype, "childNodes");
  const textContent = getter(Node.prototype, "textContent");
  const appendChild = method(Node.prototype, "appendChild");
  const nextElement = getter(Element.prototype, "nextElementSibling");
  const previousElement = getter(Element.prototype, "previousElementSibling");
  const openRoot = getter(Element.prototype, "shadowRoot");
  const assignedSlot = getter(Element.prototype, "assignedSlot");
  const className = (element) => attribute(element, "class") ?? "";
  const attribute = method(Element.prototype, "getAttribute");
  const setAttribute = method(Element.prototype, "setAttribute");
  const removeAttribute = method(Element.prototype, "removeAttribute");
  const hasAttribute = method(Element.prototype, "hasAttribute");
  const matches = method(Element.prototype, "matches");
  const closestInRoot = method(Element.prototype, "closest");
  const queryElement = method(Element.prototype, "querySelectorAll");
  const queryDocument = method(Document.prototype, "querySelectorAll");
  const queryFragment = method(DocumentFragment.prototype, "querySelectorAll");
  const box = method(Element.prototype, "getBoundingClientRect");
  const checkVisibility = method(Element.prototype, "checkVisibility");
  const clientHeight = getter(Element.prototype, "clientHeight");
  const clientWidth = getter(Element.prototype, "clientWidth");
  const scrollHeight = getter(Element.prototype, "scrollHeight");
  const scrollWidth = getter(Element.prototype, "scrollWidth");
  const htmlStyle = getter(HTMLElement.prototype, "style");
  const svgStyle = getter(SVGElement.prototype, "style");
  const isHtml = (node) => node instanceof HTMLElement;
  const inlineStyle = (element) => (isHtml(element) ? htmlStyle(element) : element instanceof SVGElement ? svgStyle(element) : null);
  const tag = getter(Element.prototype, "localName");
  const textData = getter(CharacterData.prototype, "data");
  const rootNode = method(Node.prototype, "getRootNode");
  const hostOf = getter(ShadowRoot.prototype, "host");
  const root = getter(Document.prototype, "documentElement")(document);
  const bodyOf = getter(Document.prototype, "body");
  const body = () => bodyOf(document) ?? root;
  const styleOf = (element) => getComputedStyle(element);
  const UNSEEN_TAGS = new Set(["script", "style", "noscript", "template", "head", "title", "iframe", "object", "embed",
    "video", "audio", "canvas", "option", "datalist", "textarea", "link", "meta"]);

  // All but the many elements that cannot have a shadow root.
  const NO_HOSTS = ":not(a, abbr, b, br, code, dd, dl, dt, em, i, img, input, li, link, meta, option, pre, script, strong, sup, td, th, tr, ul, use, path, pre span)";
  const MAX_NODES = 200000;

  const shadowOf = (element) => openRoot(element) ?? (Object.hasOwn(globalThis, "closedRoots") ? globalThis.closedRoots.get(element) : null) ?? null;
  const queryIn = (scope, selector) =>
    scope instanceof Element ? queryElement(scope, selector)
      : scope instanceof Document ? queryDocument(scope, selector) : queryFragment(scope, selector);

  // The document and every shadow root within it; looked for once between two moments at which the page's scripts run.
  let knownRoots = null;
  const forget = () => { knownRoots = null; };
  const roots = () => {
    if (knownRoots) return knownRoots;
    knownRoots = [document];
    for (const scope of knownRoots) {
      const elements = queryIn(scope, NO_HOSTS);
      for (let i = 0; i < elements.length; i++) {
        const shadow = shadowOf(elements[i]);
        if (shadow) knownRoots.push(shadow);
      }
    }
    return knownRoots;
  };
  const all = (selector, scopes = roots()) => scopes.flatMap((scope) => [...queryIn(scope, selector)]);

  // An element's parent in the tree that is painted: through slots and out of shadow roots.
  const parentOf = (node) => {
    if (node instanceof Element) {
      const slot = assignedSlot(node);
      if (slot) return slot;
    }
    const parent = parentNode(node);
    if (parent instanceof ShadowRoot) return hostOf(parent);
    return parent instanceof Element ? parent : null;
  };
  const closest = (element, selector) => {
    for (let at = element; at; at = parentOf(at)) {
      const found = closestInRoot(at, selector);
      if (found) return found;
      const scope = rootNode(at);
      if (!(scope instanceof ShadowRoot)) return null;
      at = hostOf(scope);
      if (matches(at, selector)) return at;
    }
    return null;
  };
  const holds = (ancestor, node) => {
    for (let at = node; at; at = parentOf(at)) if (at === ancestor) return true;
    return false;
  };
  const byId = (element, id) => {
    const scope = rootNode(element);
    if (!id) return null;
    // An element that the page has replaced has no scope any more; what it names may be there all the same.
    return scope instanceof DocumentFragment ? DocumentFragment.prototype.getElementById.call(scope, id) : Document.prototype.getElementById.call(document, id);
  };
  const normal = (text) => text.replace(/\s+/gu, " ").trim();
  const labelOf = (element) =>
    normal(attribute(element, "aria-label") || textContent(element).slice(0, 2000) || attribute(element, "title") || attribute(element, "value") || "");

  const isRendered = (element) => checkVisibility(element, { opacityProperty: true, visibilityProperty: true });
  const intersect = (one, other) =>
    one && other
      ? { top: Math.max(one.top, other.top), left: Math.max(one.left, other.left), bottom: Math.min(one.bottom, other.bottom), right: Math.min(one.right, other.right) }
      : one ?? other;

  // One look at the page: what is asked of it is remembered, so make a new one after every change.
  const look = () => {
    const clips = new Map();
    const rendered = new Map();
    const isSeen = (element) => {
      let seen = rendered.get(element);
      if (seen === undefined) rendered.set(element, (seen = isRendered(element)));
      return seen;
    };
    // An element may be painted without what it holds: a closed section, or one that is only there to be found.
    const hidesOwnText = (element) => (tag(element) === "details" && !hasAttribute(element, "open")) || styleOf(element).contentVisibility === "hidden";
    // The part of the page that an element's descendants may paint on; null: all of it.
    const clipOf = (element) => {
      const chain = [];
      let at = element;
      for (; at && !clips.has(at); at = parentOf(at)) chain.push(at);
      let clip = at ? clips.get(at) : null;
      for (const next of chain.reverse()) {
        const style = styleOf(next);
        if (style.position === "fixed") clip = null;
        if (next !== root && next !== body()) {
          const overflow = style.overflowX + style.overflowY;
          if (/hidden|clip/.test(overflow)) clip = intersect(clip, box(next));
          else if (/auto|scroll/.test(overflow) && (clientHeight(next) < 2 || clientWidth(next) < 2)) clip = intersect(clip, box(next));
        }
        clips.set(next, clip);
      }
      return clip;
    };
    const range = document.createRange();
    const isTextSeen = (text, parent) => {
      if (!isSeen(parent) || UNSEEN_TAGS.has(tag(parent)) || hidesOwnText(parent)) return false;
      range.selectNodeContents(text);
      const area = range.getBoundingClientRect();
      if (area.width < 0.5 || area.height < 0.5) return false;
      if (area.right + scrollX <= 0 || area.bottom + scrollY <= 0) return false;
      const clip = clipOf(parent);
      if (!clip) return true;
      const isWithin = Math.min(area.bottom, clip.bottom) - Math.max(area.top, clip.top) >= Math.min(2, area.height / 2);
      // Beside a clip's edge lie the slides of a carousel, which can be moved into view.
      return isWithin && clip.right - clip.left >= 2;
    };
    // The text nodes that can be seen below an element (the page by default), in document order, all of them or
    // as many as it takes to have so many characters.
    const texts = (scope = root, enoughChars = Infinity) => {
      const found = new Map();
      const waiting = [scope];
      let steps = 0;
      let chars = 0;
      while (waiting.length && steps++ < MAX_NODES && chars < enoughChars) {
        const node = waiting.pop();
        if (node instanceof Text) {
          const text = normal(textData(node));
          const parent = text && parentOf(node);
          if (parent && isTextSeen(node, parent)) {
            found.set(node, text);
            chars += text.length;
          }
          continue;
        }
        if (node instanceof Element) {
          if (UNSEEN_TAGS.has(tag(node)) || (!isSeen(node) && styleOf(node).display === "none")) continue;
        } else if (!(node instanceof ShadowRoot)) continue;
        const within = node instanceof Element ? shadowOf(node) : null;
        let children = childNodes(within ?? node);
        if (node instanceof HTMLSlotElement) {
          const assigned = node.assignedNodes();
          if (assigned.length) children = assigned;
        }
        for (let i = children.length - 1; i >= 0; i--) waiting.push(children[i]);
      }
      return found;
    };
    return { isSeen, isTextSeen, texts, clipOf };
  };
  const textLength = (found) => { let sum = 0; for (const text of found.values()) sum += text.length; return sum; };
  // Seen text by the block that it stands in: libraries split a sentence into many text nodes.
  const blocksOf = (found) => {
    const blockOf = new Map();
    const blockAround = (parent) => {
      const chain = [];
      let at = parent;
      for (; !blockOf.has(at); at = parentOf(at)) {
        chain.push(at);
        if (!parentOf(at) || !/^(?:inline|contents)/.test(styleOf(at).display)) {
          blockOf.set(at, at);
          break;
        }
      }
      const block = blockOf.get(at);
      for (const inner of chain) blockOf.set(inner, block);
      return block;
    };
    const blocks = new Map();
    for (const [node, text] of found) {
      const block = blockAround(parentOf(node));
      blocks.set(block, blocks.has(block) ? `${blocks.get(block)} ${text}` : text);
    }
    return blocks;
  };
  const seenText = (scope) => [...look().texts(scope).values()].join(" ");

  const KEPT_ATTRIBUTES = ["class", "href", "alt", "title", "colspan", "rowspan", "scope", "start", "reversed", "value", "type",
    "datetime", "dir", "lang", "aria-label", "aria-level", "open", "width", "height", "cite"];
  const KEPT_ROLES = /^(table|grid|treegrid|row|rowgroup|cell|gridcell|columnheader|rowheader|list|listitem|heading|img|term|definition)$/;
  const copyElement = (element) => {
    const display = styleOf(element).display;
    let name = tag(element);
    if (!isHtml(element) || name.includes("-") || name === "slot" || name === "body" || name === "form" || name === "dialog") name = /^(inline|contents)$/.test(display) ? "span" : "div";
    const copy = document.createElement(name);
    for (const kept of KEPT_ATTRIBUTES) {
      if (hasAttribute(element, kept)) setAttribute(copy, kept, attribute(element, kept));
    }
    if (name === "details") setAttribute(copy, "open", "");
    const role = attribute(element, "role") ?? "";
    if (KEPT_ROLES.test(role)) setAttribute(copy, "role", role);
    htmlStyle(copy).cssText = inlineStyle(element)?.cssText ?? "";
    if (element instanceof HTMLImageElement) {
      copy.src = element.currentSrc || element.src;
    } else if (element instanceof HTMLInputElement) {
      if (element.type !== "password") setAttribute(copy, "value", element.value);
      copy.checked = element.checked;
    }
    return copy;
  };
  // A copy of what can be seen of an element now, without ids, scripts, frames or anything hidden; null if nothing can.
  const copyOf = (element) => {
    const view = look();
    if (!view.texts(element).size && !queryIn(element, "img, svg").length) return null;
    const top = document.createElement("div");
    const waiting = [[element, top]];
    while (waiting.length) {
      const [node, into] = waiting.pop();
      if (node instanceof Text) {
        const data = textData(node);
        const parent = parentOf(node);
        if (!data.trim() || (parent && view.isTextSeen(node, parent))) appendChild(into, document.createTextNode(data));
        continue;
      }
      if (!(node instanceof Element) || UNSEEN_TAGS.has(tag(node))) continue;
      if (!view.isSeen(node) && styleOf(node).display === "none") continue;
      if (tag(node) === "svg" || tag(node) === "math" || tag(node) === "select") {
        appendChild(into, method(Node.prototype, "cloneNode")(node, true));
        continue;
      }
      const copy = copyElement(node);
      appendChild(into, copy);
      let children = childNodes(shadowOf(node) ?? node);
      if (node instanceof HTMLSlotElement && node.assignedNodes().length) children = node.assignedNodes();
      for (let i = children.length - 1; i >= 0; i--) waiting.push([children[i], copy]);
    }
    return top;
  };

  // Takes effect at once: what would turn into it by and by waits for time that may stand still.
  const force = (element, styles) => {
    const style = inlineStyle(element);
    if (style) for (const [name, value] of Object.entries({ transition: "none", ...styles })) style.setProperty(name, value, "important");
  };
  // Undo whatever hides this one element, leaving alone what is hidden within it.
  const reveal = (element) => {
    for (const name of ["hidden", "inert"]) removeAttribute(element, name);
    if (attribute(element, "aria-hidden") === "true") removeAttribute(element, "aria-hidden");
    let style = styleOf(element);
    if (style.display === "none") {
      force(element, { display: "revert" });
      if (styleOf(element).display === "none") force(element, { display: "block" });
      style = styleOf(element);
    }
    if (style.contentVisibility === "hidden") force(element, { "content-visibility": "visible" });
    if (style.visibility !== "visible") force(element, { visibility: "visible" });
    if (Number(style.opacity) < 0.1) force(element, { opacity: "1" });
    if (style.position === "absolute" || style.position === "fixed") force(element, { position: "static", transform: "none" });
    if (/hidden|clip/.test(style.overflowY) && scrollHeight(element) > clientHeight(element) + 2) {
      force(element, { height: "auto", "max-height": "none", overflow: "visible", "-webkit-line-clamp": "none" });
    }
    if (style.gridTemplateRows === "0px") force(element, { "grid-template-rows": "auto" });
    const area = box(element);
    if (area.right + scrollX <= 0 || area.bottom + scrollY <= 0) force(element, { position: "static", left: "auto", top: "auto", transform: "none", "text-indent": "0" });
  };

  // A link to a fragment that is no place on the page: a script shows something by it.
  const namesNothing = (link) => {
    const fragment = /^#([\w-]+)$/.exec(attribute(link, "href") ?? "")?.[1];
    return fragment !== undefined && fragment !== "top" && !byId(link, fragment) && !queryIn(document, `[name="${fragment}"]`).length;
  };
  // A press as a user's, but one that can neither follow a link to elsewhere nor send a form.
  const press = (element) => {
    const isLink = (node) => node instanceof Element && hasAttribute(node, "href") && !namesNothing(node);
    const onClick = (event) => {
      const around = closest(element, "[href]");
      if (event.composedPath().some(isLink) || (around && isLink(around))) event.preventDefault();
    };
    const onSubmit = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };
    addEventListener("click", onClick, true);
    addEventListener("submit", onSubmit, true);
    try {
      const area = box(element);
      const at = { bubbles: true, composed: true, cancelable: true, view: window, button: 0,
        clientX: area.left + area.width / 2, clientY: area.top + area.height / 2 };
      const pointer = { ...at, pointerId: 1, pointerType: "mouse", isPrimary: true };
      const send = method(EventTarget.prototype, "dispatchEvent");
      send(element, new PointerEvent("pointerdown", { ...pointer, buttons: 1 }));
      send(element, new MouseEvent("mousedown", { ...at, buttons: 1, detail: 1 }));
      send(element, new PointerEvent("pointerup", pointer));
      send(element, new MouseEvent("mouseup", { ...at, detail: 1 }));
      if (isHtml(element)) method(HTMLElement.prototype, "click")(element);
      else send(element, new MouseEvent("click", { ...at, detail: 1 }));
    } finally {
      removeEventListener("click", onClick, true);
      removeEventListener("submit", onSubmit, true);
      forget();
    }
  };

  // Transitions and animations that have an end are at it.
  const endAnimations = () => {
    for (const animation of document.getAnimations()) {
      const end = animation.effect?.getComputedTiming().endTime;
      if (Number.isFinite(end)) { try { animation.finish(); } catch { /* it has no time of its own */ } }
    }
  };

  // An element that the page names `pageTools` is none of ours.
  const { scripts, kept } = Object.hasOwn(globalThis, "pageTools") ? globalThis.pageTools : { scripts: {}, kept: {} };
  globalThis.pageTools = {
    scripts, kept, forget, getter, method, parentNode, isConnected, childNodes, textContent, appendChild, nextElement, previousElement,
    attribute, setAttribute, removeAttribute, hasAttribute, matches, closest, className, box, clientHeight, clientWidth,
    scrollHeight, scrollWidth, inlineStyle, isHtml, tag, root, body, styleOf, shadowOf, queryIn, roots, all, parentOf,
    holds, byId, normal, labelOf, isRendered, look, textLength, blocksOf, seenText, copyOf, force, reveal, press, namesNothing, endAnimations,
  };
}

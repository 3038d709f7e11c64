// The values of CSS counters, which style sheets number headings and lists with and computed styles only name.
function (parts) {
  const { dom } = parts;
  const MAX_ELEMENTS = 100_000;
  let known = null; // element to { "::before": values, "::after": values }; made when first asked for

  const changes = (text, byDefault) => {
    if (!text || text === "none") return [];
    return [...text.matchAll(/([^\s\d-][^\s]*)(?:\s+(-?\d+))?/g)].map(([, name, value]) => [name, value === undefined ? byDefault : Number(value)]);
  };

  class Scopes {
    constructor() {
      this.counters = new Map(); // name to a stack of { value, parent }
    }

    reset(name, value, parent) {
      const stack = this.counters.get(name) ?? [];
      this.counters.set(name, stack);
      if (stack.length && stack.at(-1).parent === parent) stack.pop();
      stack.push({ value, parent });
    }

    change(name, parent, changed) {
      if (!this.counters.get(name)?.length) this.reset(name, 0, parent);
      const counter = this.counters.get(name).at(-1);
      counter.value = changed(counter.value);
    }

    apply(style, parent) {
      for (const [name, value] of changes(style.counterReset, 0)) this.reset(name, value, parent);
      for (const [name, value] of changes(style.counterIncrement, 1)) this.change(name, parent, (old) => old + value);
      for (const [name, value] of changes(style.counterSet, 0)) this.change(name, parent, () => value);
    }

    leave(parent) {
      for (const stack of this.counters.values()) while (stack.length && stack.at(-1).parent === parent) stack.pop();
    }

    values() {
      return new Map([...this.counters].map(([name, stack]) => [name, stack.map((counter) => counter.value)]));
    }
  }

  function pseudo(scopes, element, side) {
    const style = getComputedStyle(element, side);
    if (style.content === "none" || style.content === "normal" || style.display === "none") return;
    scopes.apply(style, element);
    if (!style.content.includes("counter")) return;
    if (!known.has(element)) known.set(element, {});
    known.get(element)[side] = scopes.values();
  }

  function countAll() {
    known = new Map();
    const scopes = new Scopes();
    const open = [{ element: null, next: dom.root(document) }];
    for (let count = 0; open.length && count < MAX_ELEMENTS; ) {
      const top = open.at(-1);
      const node = top.next;
      if (!node) {
        open.pop();
        if (top.element) pseudo(scopes, top.element, "::after");
        scopes.leave(top.element);
        continue;
      }
      top.next = dom.next(node);
      if (dom.type(node) !== 1) continue;
      count++;
      const style = getComputedStyle(node);
      if (style.display === "none") continue;
      scopes.apply(style, top.element);
      pseudo(scopes, node, "::before");
      open.push({ element: node, next: dom.first(dom.openRoot(node) ?? node) });
    }
  }

  // What `counter(name, style)` or `counters(name, "separator", style)` shows in an element's pseudo-element.
  function text(element, side, expression) {
    if (known === null) countAll();
    const call = /^(counters?)\(\s*([^\s,)]+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?(?:,\s*([\w-]+)\s*)?\)$/.exec(expression);
    const values = call && known.get(element)?.[side]?.get(call[2]);
    if (!values?.length) return call && known.get(element)?.[side] ? "0" : "";
    const shown = call[1] === "counter" ? values.slice(-1) : values;
    return shown.map((value) => parts.generated.number(value, call[4] ?? "decimal")).join(call[3] ?? "");
  }

  return { text };
}

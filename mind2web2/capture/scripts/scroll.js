// One step of scrolling a document and the panes within it; returns how far it got.
function (step, ...given) {
  const t = globalThis.pageTools;
  const state = (globalThis.scrolling ??= { panes: null, changes: null, lists: [] });
  const view = document.scrollingElement ?? t.root;
  const MIN_ROWS = 3;
  const MAX_ROW_CHARS = 3000;
  const MAX_ROWS = 2000;
  const scrollTop = t.getter(Element.prototype, "scrollTop");
  const setTop = (element, top) => {
    // Neither by `scrollTo`, whose promise waits for time that stands still, nor smoothly, which does likewise.
    const styled = element === view ? t.root : element;
    if (t.styleOf(styled).scrollBehavior !== "auto") t.force(styled, { "scroll-behavior": "auto" });
    Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop").set.call(element, top);
  };
  const heightOf = (element) => (element === view ? innerHeight : t.clientHeight(element));
  const isPane = (element) => {
    if (element === view || element === t.body() || element === t.root) return false;
    if (t.scrollHeight(element) < t.clientHeight(element) + 20 || t.clientHeight(element) < 60 || t.clientWidth(element) < 100) return false;
    return /auto|scroll|overlay/.test(t.styleOf(element).overflowY) && t.isRendered(element) && t.tag(element) !== "textarea" && t.tag(element) !== "select";
  };
  // What the page takes away while it is scrolled, by what it was in.
  const note = (changes) => {
    for (const { target, removedNodes } of changes) {
      for (const node of removedNodes) {
        const text = node instanceof Element && target instanceof Element ? t.normal(t.textContent(node)) : "";
        if (!text || text.length > MAX_ROW_CHARS) continue;
        if (!state.gone.has(target)) state.gone.set(target, new Set());
        const texts = state.gone.get(target);
        if (texts.size < MAX_ROWS) texts.add(text);
      }
    }
  };
  // The list of a pane that takes away what is out of view, if there is one.
  const windowedList = (pane) => {
    note(state.changes.takeRecords());
    let list = null;
    let most = MIN_ROWS - 1;
    for (const [target, texts] of state.gone) {
      if (!t.isConnected(target) || !t.holds(pane, target)) continue;
      const now = t.textContent(target).replace(/\s+/gu, " ");
      const lost = [...texts].filter((text) => !now.includes(text)).length;
      if (lost > most) [list, most] = [target, lost];
    }
    return list;
  };
  const keyOf = (row) => ["aria-rowindex", "aria-posinset", "data-index", "data-row-index"].map((name) => t.attribute(row, name) ?? "").join() + t.normal(t.textContent(row));
  // As much of a list as is not in view at the top of the page, laid out behind what is.
  const placeRows = ({ list, pane, rows }) => {
    if (!t.isConnected(list)) return 0;
    const shown = new Set([...t.queryIn(list, ":scope > *")].map(keyOf));
    const missing = [...rows].filter(([key]) => !shown.has(key)).map(([, { copy }]) => copy);
    const isTable = /^(?:tbody|table)$/.test(t.tag(list));
    const box = document.createElement(isTable ? "table" : /^(?:ul|ol)$/.test(t.tag(list)) ? t.tag(list) : "div");
    const head = isTable ? t.queryIn(t.closest(list, "table"), "thead")[0] : null;
    const parts = [head && t.copyOf(head), ...missing].filter(Boolean);
    for (const part of parts) {
      const inner = t.getter(Element.prototype, "firstElementChild")(part);
      if (!inner) continue;
      t.force(inner, { position: "static", transform: "none", inset: "auto" });
      t.appendChild(box, inner);
    }
    if (missing.length) t.method(Element.prototype, "after")(pane === view ? t.closest(list, "table") ?? list : pane, box);
    return missing.length;
  };

  const steps = {
    // The document and its panes, the largest first; how many of them have more than fits.
    begin: (limit) => {
      const panes = t.all("*").filter(isPane).sort((one, other) => t.clientHeight(other) * t.clientWidth(other) - t.clientHeight(one) * t.clientWidth(one)).slice(0, limit);
      state.gone = new Map();
      state.changes ??= new MutationObserver(note);
      state.changes.observe(t.root, { childList: true, subtree: true });
      state.panes = [...(t.scrollHeight(view) > innerHeight + 4 ? [view] : []), ...panes];
      return state.panes.length;
    },
    // One screen further; whether the end was reached, and how high everything is now.
    down: (index) => {
      const pane = state.panes[index];
      if (!t.isConnected(pane)) return { atEnd: true, top: 0, height: 0 };
      const before = scrollTop(pane);
      setTop(pane, before + Math.max(heightOf(pane) * 0.9, 40));
      const height = t.scrollHeight(pane);
      return { atEnd: scrollTop(pane) + heightOf(pane) >= height - 2 || scrollTop(pane) === before, top: scrollTop(pane), height };
    },
    // Back to the pane's top, where the list in it drops what is out of view and has not been gathered yet.
    rewind: (index) => {
      const pane = state.panes[index];
      const list = t.isConnected(pane) ? windowedList(pane) : null;
      if (!list || state.lists.some((known) => known.list === list || t.holds(list, known.list))) return false;
      state.lists.push({ list, pane, rows: new Map(), isPlaced: false });
      setTop(pane, 0);
      return true;
    },
    // Gather the rows in view, then go on by half a screen; whether there are more.
    gather: (index) => {
      const { list, rows } = state.lists.at(-1);
      const pane = state.panes[index];
      if (!t.isConnected(pane) || !t.isConnected(list)) return { isMore: false, rows: rows.size };
      const looking = t.look();
      for (const row of t.queryIn(list, ":scope > *")) {
        const seen = t.textLength(looking.texts(row));
        const key = keyOf(row);
        if (!seen || (rows.get(key)?.seen ?? 0) >= seen || rows.size >= MAX_ROWS) continue;
        const copy = t.copyOf(row);
        if (copy) rows.set(key, { copy, seen });
      }
      const before = scrollTop(pane);
      setTop(pane, before + Math.max(heightOf(pane) * 0.5, 40));
      return { isMore: scrollTop(pane) > before && rows.size < MAX_ROWS, rows: rows.size };
    },
    place: () => {
      let placed = 0;
      for (const one of state.lists) {
        if (one.isPlaced) continue;
        one.isPlaced = true;
        placed += placeRows(one);
      }
      state.changes?.disconnect();
      return placed;
    },
    height: (index) => (t.isConnected(state.panes[index]) ? t.scrollHeight(state.panes[index]) : 0),
    nudge: (index) => { const pane = state.panes[index]; setTop(pane, scrollTop(pane) - 60); },
    top: () => {
      for (const pane of state.panes ?? []) if (t.isConnected(pane)) setTop(pane, 0);
    },
  };
  return steps[step](...given) ?? null;
}

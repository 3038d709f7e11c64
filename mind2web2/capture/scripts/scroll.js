// One step of scrolling a document and the panes within it; returns how far it got.
function (step, ...given) {
  const t = globalThis.pageTools;
  const state = (t.kept.scrolling ??= { panes: [], changes: null, lists: [], hidden: new Set(), faded: new Set() });
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
    const height = t.clientHeight(element);
    if (height < 60 || t.scrollHeight(element) < height + 20 || t.clientWidth(element) < 100) return false;
    if (element === view || element === t.body() || element === t.root) return false;
    return /auto|scroll|overlay/.test(t.styleOf(element).overflowY) && t.isRendered(element) && t.tag(element) !== "textarea" && t.tag(element) !== "select";
  };
  // Texts that go while the page is scrolled, by the list that they were in: with their row, or within a row that
  // the page uses again.
  const note = (changes) => {
    for (const { type, target, oldValue, removedNodes } of changes) {
      if (type === "characterData") noteWithin(target, oldValue);
      for (const node of removedNodes) {
        if (node instanceof Element && target instanceof Element) add(state.gone, target, t.textContent(node));
        else if (node instanceof Text) noteWithin(target, t.textContent(node));
      }
    }
  };
  const add = (texts, list, text) => {
    const normal = t.normal(text);
    if (!normal || normal.length > MAX_ROW_CHARS) return;
    if (!texts.has(list)) texts.set(list, new Set());
    if (texts.get(list).size < MAX_ROWS) texts.get(list).add(normal);
  };
  const noteWithin = (node, text) => {
    for (let row = node instanceof Element ? node : t.parentOf(node), list; row && (list = t.parentOf(row)); row = list) {
      if (!state.changedRows.has(list)) state.changedRows.set(list, new Set());
      state.changedRows.get(list).add(row);
      add(state.changed, list, text);
      if (list === t.body()) return;
    }
  };
  const lostFrom = (list, texts) => {
    const now = t.textContent(list).replace(/\s+/gu, " ");
    return [...texts].filter((text) => !now.includes(text));
  };
  // The list of a pane that drops what is out of view, if there is one, and the texts that it has dropped.
  const windowedList = (pane) => {
    note(state.changes.takeRecords());
    let found = null;
    let most = MIN_ROWS - 1;
    for (const [list, texts] of state.gone) {
      if (!t.isConnected(list) || !t.holds(pane, list)) continue;
      const lost = lostFrom(list, texts);
      if (lost.length > most) [found, most] = [{ list, reused: null }, lost.length];
    }
    if (found) return found;
    for (const [list, rows] of state.changedRows) {
      if (rows.size <= most || !t.isConnected(list) || !t.holds(pane, list)) continue;
      const lost = lostFrom(list, state.changed.get(list) ?? []);
      if (lost.length >= MIN_ROWS) [found, most] = [{ list, reused: lost }, rows.size];
    }
    return found;
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

  // Animations that follow the scroll position are undone; their text is seen at one position or another.
  const endScrollAnimations = () => {
    for (const animation of document.getAnimations()) {
      if (!animation.timeline || animation.timeline instanceof DocumentTimeline) continue;
      const target = animation.effect?.target;
      const appears = animation.effect?.getKeyframes().some(({ opacity }) => Number(opacity) > 0.1);
      animation.cancel();
      if (target && appears && Number(t.styleOf(target).opacity) < 0.1) t.force(target, { opacity: "1" });
    }
  };
  // Text that fades in while the page is scrolled, and out again when it is left.
  const noteFaded = () => {
    for (const element of state.hidden) {
      if (!t.isRendered(element) && !isAppearing(element)) continue;
      state.hidden.delete(element);
      state.faded.add(element);
    }
  };
  const isAppearing = (element) => element.getAnimations().some((one) => Number(one.effect?.getKeyframes().at(-1)?.opacity) > 0.1);
  const lazyParts = () => t.all("img[loading=lazy], iframe[loading=lazy]").some((part) => t.tag(part) === "iframe" || !part.complete);

  const steps = {
    // What there is to scroll for: parts that load by themselves, scripts that may do more; null where all fits.
    begin: (limit) => {
      endScrollAnimations();
      const isScript = (script) => /^$|javascript|module|ecmascript/i.test(t.attribute(script, "type") ?? "");
      state.hasMoved = false;
      state.gone = new Map();
      state.changed = new Map();
      state.changedRows = new Map();
      state.changes ??= new MutationObserver((changes) => { state.hasMoved = true; note(changes); });
      state.changes.observe(t.root, { childList: true, subtree: true, characterData: true, characterDataOldValue: true });
      const hasScripts = t.all("script").some(isScript) || t.all("[onscroll]").length > 0;
      return { isLazy: lazyParts(), hasScripts, panes: steps.panes(limit) };
    },
    // The document and its panes, the largest first; how many of them have more than fits.
    panes: (limit) => {
      const panes = t.all("*").filter(isPane).sort((one, other) => t.clientHeight(other) * t.clientWidth(other) - t.clientHeight(one) * t.clientWidth(one)).slice(0, limit);
      state.panes = [...(t.scrollHeight(view) > innerHeight + 4 ? [view] : []), ...panes];
      return state.panes.length;
    },
    toEnd: () => {
      state.heights = state.panes.map((pane) => t.scrollHeight(pane));
      for (const pane of state.panes) setTop(pane, t.scrollHeight(pane));
      return state.panes.length;
    },
    hasChanged: () => state.hasMoved || state.panes.some((pane, index) => t.scrollHeight(pane) !== state.heights[index]),
    // Remember which text is there but not visible yet.
    noteHidden: () => {
      for (const element of t.all("body *")) {
        const style = t.styleOf(element);
        if ((style.opacity === "0" || style.visibility === "hidden") && style.display !== "none" && /\S/.test(t.textContent(element))) state.hidden.add(element);
      }
    },
    // One screen further; whether the end was reached, and how high everything is now.
    down: (index) => {
      const pane = state.panes[index];
      noteFaded();
      if (!t.isConnected(pane)) return { atEnd: true, top: 0, height: 0 };
      const before = scrollTop(pane);
      setTop(pane, before + Math.max(heightOf(pane) * 0.9, 40));
      const height = t.scrollHeight(pane);
      return { atEnd: scrollTop(pane) + heightOf(pane) >= height - 2 || scrollTop(pane) === before, top: scrollTop(pane), height };
    },
    // Back to the pane's top, where the list in it drops what is out of view and has not been gathered yet.
    rewind: (index) => {
      const pane = state.panes[index];
      const found = t.isConnected(pane) ? windowedList(pane) : null;
      if (!found || state.lists.some(({ list }) => list === found.list || t.holds(found.list, list))) return false;
      state.lists.push({ ...found, pane, rows: new Map(), isPlaced: false });
      setTop(pane, 0);
      return true;
    },
    // Gather the rows in view, then go on by half a screen; whether there are more.
    gather: (index) => {
      const { list, rows, reused } = state.lists.at(-1);
      const pane = state.panes[index];
      if (!t.isConnected(pane) || !t.isConnected(list)) return { isMore: false };
      // A clock, too, changes its text; but what it showed at the top does not come back there.
      if (reused && !rows.size && reused.length - lostFrom(list, reused).length < MIN_ROWS) return { isMore: false };
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
      return { isMore: scrollTop(pane) > before && rows.size < MAX_ROWS };
    },
    place: () => {
      t.endAnimations();
      let placed = 0;
      for (const one of state.lists) {
        if (one.isPlaced) continue;
        one.isPlaced = true;
        placed += placeRows(one);
      }
      for (const element of state.faded) {
        if (t.isConnected(element) && !t.isRendered(element)) t.force(element, { opacity: "1", visibility: "visible", transform: "none" });
      }
      state.changes?.disconnect();
      return placed;
    },
    height: (index) => (t.isConnected(state.panes[index]) ? t.scrollHeight(state.panes[index]) : 0),
    top: () => {
      noteFaded();
      for (const pane of state.panes) if (t.isConnected(pane)) setTop(pane, 0);
    },
  };
  return steps[step](...given) ?? null;
}

// Make a document such that one long image shows all of it; one step of it.
function (step, ...given) {
  const t = globalThis.pageTools;
  const view = document.scrollingElement ?? t.root;
  const ASIDE = "nav, aside, [role=navigation], [role=complementary], [role=listbox], [role=menu], textarea, select";
  const isTall = (element) => t.scrollHeight(element) > t.clientHeight(element) + 8;

  // Where a pane scrolls, let it be as high as what it holds, and everything around it too.
  const expand = (pane) => {
    t.force(pane, { height: "auto", "max-height": "none", overflow: "visible" });
    if (t.styleOf(pane).contain !== "none") t.force(pane, { contain: "none" });
    for (let at = pane; at && at !== t.root; at = t.parentOf(at)) {
      const style = t.styleOf(at);
      if (style.position === "fixed" || style.position === "absolute") t.force(at, { position: "relative", inset: "auto" });
      if (at !== pane && (/hidden|clip|auto|scroll/.test(style.overflowY) || isTall(at))) t.force(at, { height: "auto", "max-height": "none", overflow: "visible" });
      const parent = t.parentOf(at);
      if (!parent) break;
      const around = t.styleOf(parent);
      if (/flex/.test(around.display) && /column/.test(around.flexDirection)) t.force(at, { flex: "none" });
      if (/grid/.test(around.display) && t.box(at).bottom > t.box(parent).bottom + 4) t.force(parent, { "grid-template-rows": "none", height: "auto" });
    }
    for (const element of [t.body(), t.root]) {
      if (/hidden|clip/.test(t.styleOf(element).overflowY) || (element === t.body() && isTall(element))) t.force(element, { overflow: "visible", height: "auto", "max-height": "none" });
    }
  };
  const panes = (elements) => elements.filter((element) => {
    const height = t.clientHeight(element);
    if (height < 40 || t.scrollHeight(element) < height + 8 || t.clientWidth(element) < 100) return false;
    return /auto|scroll|overlay/.test(t.styleOf(element).overflowY) && t.isRendered(element) && !t.matches(element, ASIDE);
  });
  const isLarge = (element) => t.clientHeight(element) * t.clientWidth(element) > 0.25 * innerHeight * innerWidth;
  const widen = (elements, limit) => {
    const narrow = elements.filter((element) => {
      const width = t.clientWidth(element);
      if (width < 60 || t.scrollWidth(element) < width + 8 || t.scrollWidth(element) > limit) return false;
      if (!/auto|scroll/.test(t.styleOf(element).overflowX) || !t.isRendered(element)) return false;
      return t.matches(element, "table, pre") || t.queryIn(element, "table, pre, [role=table], [role=grid]").length > 0;
    });
    // Not one by one: each look at a size after a change lays the page out again.
    for (const element of narrow) t.force(element, { overflow: "visible", "max-width": "none" });
  };
  // What stays in place while the page scrolls stands where the top of the page shows it, or behind the page's end.
  const settleFixed = (elements) => {
    const late = [];
    for (const element of elements) {
      const { position } = t.styleOf(element);
      if (position === "sticky") {
        t.force(element, { position: "relative", inset: "auto" });
        continue;
      }
      if (position !== "fixed" || !t.isRendered(element)) continue;
      const area = t.box(element);
      if (area.width < 2 || area.height < 2) continue;
      const isSide = area.height > 0.5 * innerHeight && area.width < 0.4 * innerWidth;
      if (area.top < 0.35 * innerHeight || isSide) place(element, area.left, area.top + scrollY, area);
      else late.push([element, area]);
    }
    for (const [element, area] of late) place(element, area.left, Math.max(t.scrollHeight(view), innerHeight), area);
  };
  const place = (element, left, top, area) => {
    t.force(element, { position: "absolute", inset: "auto", top: `${top}px`, left: `${left}px`, width: `${area.width}px`, margin: "0" });
    const now = t.box(element);
    t.force(element, { top: `${2 * top - now.top - scrollY}px`, left: `${2 * left - now.left - scrollX}px` });
  };
  const hasTextRightOf = (limit) => {
    const view = t.look();
    const range = document.createRange();
    return t.roots().some((scope) => {
      const walker = document.createTreeWalker(scope, NodeFilter.SHOW_TEXT);
      for (let text; (text = walker.nextNode()); ) {
        range.selectNodeContents(text);
        if (range.getBoundingClientRect().right + scrollX > limit && /\S/.test(text.data) && view.isTextSeen(text, t.parentOf(text))) return true;
      }
      return false;
    });
  };

  const pageHeight = () => Math.ceil(Math.max(t.scrollHeight(view), view === t.body() ? 0 : t.box(t.body()).bottom + scrollY));

  const steps = {
    prepare: (limit) => {
      t.endAnimations();
      view.scrollTop = 0;
      const elements = t.all("body *");
      const found = panes(elements);
      for (const pane of found.filter((one) => isLarge(one) || t.scrollHeight(one) <= 4000)) if (t.clientHeight(pane) < limit) expand(pane);
      const widest = 1.6 * innerWidth; // what is wider would be shown too small to read
      widen(elements, widest);
      settleFixed(elements);
      if (document.activeElement) t.force(document.activeElement, { "caret-color": "transparent" });
      const width = t.scrollWidth(view) > innerWidth + 8 && hasTextRightOf(innerWidth + 8) ? Math.min(t.scrollWidth(view), widest) : innerWidth;
      return { width: Math.ceil(width), height: pageHeight() };
    },
    height: pageHeight,
    // A frame as high as its document, where it is one to be read.
    growFrame: (id, height) => {
      for (const [frame, known] of globalThis.frameIds ?? []) {
        if (known !== id || !t.isConnected(frame) || !t.isRendered(frame)) continue;
        const now = t.box(frame);
        if (now.width < 200 || now.height < 60 || height <= now.height + 4) return;
        t.force(frame, { height: `${Math.min(height, 10000) + 4}px`, "max-height": "none" });
        for (let at = t.parentOf(frame); at && at !== t.body(); at = t.parentOf(at)) {
          if (/hidden|clip|auto|scroll/.test(t.styleOf(at).overflowY) && isTall(at)) expand(at);
        }
      }
    },
  };
  return steps[step](...given) ?? null;
}

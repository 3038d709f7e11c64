// One step of scrolling a document and the panes within it; returns how far it got.
function (step, ...given) {
  const t = globalThis.pageTools;
  const state = (globalThis.scrolling ??= { panes: null });
  const view = document.scrollingElement ?? t.root;
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
  const steps = {
    // The document and its panes, the largest first; how many of them have more than fits.
    begin: (limit) => {
      const panes = t.all("*").filter(isPane).sort((one, other) => t.clientHeight(other) * t.clientWidth(other) - t.clientHeight(one) * t.clientWidth(one)).slice(0, limit);
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
    height: (index) => (t.isConnected(state.panes[index]) ? t.scrollHeight(state.panes[index]) : 0),
    nudge: (index) => { const pane = state.panes[index]; setTop(pane, scrollTop(pane) - 60); },
    top: () => {
      for (const pane of state.panes ?? []) if (t.isConnected(pane)) setTop(pane, 0);
    },
  };
  return steps[step](...given) ?? null;
}

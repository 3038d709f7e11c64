// What is to be seen so far: decides whether a page has content of its own yet, and what it is known by.
(withText) => {
  const root = document.documentElement;
  const body = document.body;
  // Scripts in a head without a body are no text; documents of other kinds have no body.
  const whole = () => (body instanceof HTMLElement ? body.innerText : root instanceof HTMLElement ? "" : root?.textContent ?? "");
  const text = withText ? whole().slice(0, 20000) : "";
  const refresh = [...document.querySelectorAll("meta[http-equiv]")].find(
    (meta) => meta.getAttribute("http-equiv").trim().toLowerCase() === "refresh",
  );
  const refreshAfter = refresh ? parseFloat(refresh.getAttribute("content") ?? "") : NaN;
  const marks = new Set();
  for (const element of document.querySelectorAll("script[src], iframe[src], form[action], link[href], [id], [class]")) {
    if (marks.size >= 400) break;
    for (const name of ["id", "class", "src", "action"]) {
      const value = element.getAttribute(name);
      if (value) marks.add(value.slice(0, 200));
    }
  }
  return {
    text: text.replace(/\s+/g, " ").trim(),
    title: document.title ?? "",
    refreshAfter: Number.isFinite(refreshAfter) ? refreshAfter : null,
    marks: [...marks],
    url: document.URL,
    isParsed: document.readyState !== "loading",
    isCutOff: document.readyState === "complete" && performance.timing.domInteractive === 0,
  };
}

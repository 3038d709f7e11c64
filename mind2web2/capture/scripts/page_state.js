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
  // Where most pieces beyond ASCII are UTF-8 that was read one byte a letter.
  const isMojibake = () => {
    if (document.characterSet === "UTF-8") return false;
    const decoder = new TextDecoder(document.characterSet);
    const bytes = new Map(Array.from({ length: 128 }, (_, i) => [decoder.decode(Uint8Array.of(128 + i)), 128 + i]));
    const pieces = whole().slice(0, 200000).match(/[^\x00-\x7f]+/g) ?? [];
    const isUtf8 = (piece) => {
      try {
        new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(piece, (letter) => bytes.get(letter) ?? 0xff));
        return true;
      } catch {
        return false;
      }
    };
    return pieces.filter(isUtf8).length > pieces.length / 2;
  };
  return {
    text: text.replace(/\s+/g, " ").trim(),
    title: document.title ?? "",
    refreshAfter: Number.isFinite(refreshAfter) ? refreshAfter : null,
    marks: [...marks],
    url: document.URL,
    isMojibake: withText && isMojibake(),
    isParsed: document.readyState !== "loading",
    isCutOff: document.readyState === "complete" && performance.timing.domInteractive === 0,
  };
}

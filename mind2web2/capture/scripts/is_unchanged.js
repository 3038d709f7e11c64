// Tell whether the document's text, that in shadow roots included, is the same as at the last call.
() => {
  const roots = [document.documentElement, ...(globalThis.closedRoots?.values() ?? [])];
  // Grows while it is read.
  for (const root of roots) {
    for (const host of root.querySelectorAll("*")) if (host.shadowRoot) roots.push(host.shadowRoot);
  }
  const text = roots.map((root) => root.textContent).join("\n");
  const isUnchanged = globalThis.lastText === text;
  globalThis.lastText = text;
  return isUnchanged;
}

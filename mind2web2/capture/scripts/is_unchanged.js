// Tell whether the document's text is the same as at the last call.
() => {
  const text = document.documentElement.textContent;
  const isUnchanged = globalThis.lastText === text;
  globalThis.lastText = text;
  return isUnchanged;
}

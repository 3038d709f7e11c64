// Tells for each of several texts whether the fonts at hand, the page's own included, can draw all its letters.
(texts) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 48;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const loaded = [...document.fonts].filter((font) => font.status === "loaded");
  const own = new Set(loaded.map((font) => font.family.replace(/^["']|["']$/g, "")));
  const fonts = ["32px sans-serif", ...[...own].slice(0, 20).map((family) => `32px "${family}", sans-serif`)];
  const drawn = (font, letter) => {
    pen.font = font;
    pen.clearRect(0, 0, 48, 48);
    pen.fillText(letter, 4, 36);
    return pen.getImageData(0, 0, 48, 48).data.join();
  };
  // No font has an unassigned character: it shows what stands in the place of a missing letter.
  const missing = new Map(fonts.map((font) => [font, drawn(font, "\u0378")]));
  const isDrawn = (letter) => fonts.some((font) => drawn(font, letter) !== missing.get(font));
  return texts.map((text) => [...text].every(isDrawn));
}

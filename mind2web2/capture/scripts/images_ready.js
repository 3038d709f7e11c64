// Wait until fonts are there and the images that are loaded are decoded.
async function () {
  const images = [...Document.prototype.querySelectorAll.call(document, "img")];
  const loaded = images.filter((image) => image.complete && image.naturalWidth > 0).slice(0, 300);
  await Promise.allSettled([document.fonts.ready, ...loaded.map((image) => HTMLImageElement.prototype.decode.call(image))]);
}

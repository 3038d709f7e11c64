// Tells what the eye can see, or come to see by scrolling, from what is only in the document.
function (parts) {
  const { dom } = parts;
  const UNREADABLE_TEXT_PX = 3;
  const UNREADABLE_BLUR = 1 / 3; // of the font size, as the deviation that filters have; shadows have twice that
  const UNSEEN_OPACITY = 0.05;
  const UNSEEN_DIFFERENCE = 6; // of 255, in each part of a colour
  const NO_EXTENT_PX = 2;
  const FAR_PX = 900;
  const MAX_ELEMENTS_BEHIND = 50_000;
  const MAX_PAINTED = 500;
  const PICTURES = /^(img|video|canvas|svg|iframe|object|embed)$/;
  const SVG = "http://www.w3.org/2000/svg";
  const WHITE = [255, 255, 255];
  const COLOUR = /\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)/g;
  const SHADOW = /(\w+\([^()]*\)) \S+ \S+ ([\d.]+)px/g;
  const view = { width: innerWidth, height: innerHeight, x: scrollX, y: scrollY };
  const rootStyles = [dom.root(document), dom.body(document)].filter(Boolean).map((element) => getComputedStyle(element));
  const cutsOff = rootStyles.some((style) => /^(hidden|clip)/.test(style.overflowX));
  // The body's direction, where there is one, is the window's, which scrolls to the left then and not to the right.
  const isLeftward = rootStyles.at(-1)?.direction === "rtl";
  const leftmost = isLeftward && !cutsOff ? view.width - dom.scrollWidth(dom.root(document)) : 0;
  const range = new Range();

  const isEmpty = (box) => box.width === 0 || box.height === 0;

  // Beyond where any scrolling reaches: left of the page or above it, or outside the window for what stays in place.
  function isOutside(box, isFixed) {
    if (isFixed) return box.right <= 0 || box.bottom <= 0 || box.left >= view.width || box.top >= view.height;
    if (box.right + view.x <= leftmost || box.bottom + view.y <= 0) return true;
    return (cutsOff || isLeftward) && box.left + view.x >= view.width;
  }

  // `left: -9999px` hides, also in a carousel, where being outside does not.
  function isFarAway(style) {
    const far = (value) => parseFloat(value) <= -FAR_PX;
    if (style.position !== "static" && (far(style.left) || far(style.top))) return true;
    return far(style.marginLeft) || far(style.marginTop) || far(style.textIndent);
  }

  // A computed length, of which a percentage is of `whole`; not a number where it is neither.
  function lengthPx(text, whole) {
    const terms = /^calc\(([^()*]*)\)$/.exec(text)?.[1].replace(/([-+]) /g, "$1").split(" ") ?? [text];
    return terms.reduce((sum, term) => sum + (/^[-+]?[\d.e-]+(px|%)$/.test(term) ? parseFloat(term) * (term.endsWith("%") ? whole / 100 : 1) : NaN), 0);
  }

  // Whether the shape that is left of an element is too thin to show a letter.
  function isShapeEmpty(clipPath, element) {
    const shape = /^(circle|ellipse|inset|polygon)\((.*)\)/.exec(clipPath);
    if (!shape) return false;
    const { width, height } = dom.box(element);
    const parts = (text) => text.match(/calc\([^()]*\)|[^\s,]+/g) ?? [];
    let extents = [];
    if (shape[1] === "polygon") {
      const corners = parts(shape[2]).filter((part) => !/^(nonzero|evenodd)$/.test(part));
      extents = [width, height].map((whole, axis) => {
        const along = corners.filter((_, i) => i % 2 === axis).map((corner) => lengthPx(corner, whole));
        return Math.max(...along) - Math.min(...along);
      });
    } else if (shape[1] === "inset") {
      const [top, right = top, bottom = top, left = right] = parts(shape[2].split(" round ")[0]);
      extents = [width - lengthPx(left, width) - lengthPx(right, width), height - lengthPx(top, height) - lengthPx(bottom, height)];
    } else {
      const radii = parts(shape[2].split(/(?:^| )at /)[0]);
      const wholes = shape[1] === "circle" ? [Math.hypot(width, height) / Math.SQRT2] : [width, height];
      extents = radii.map((radius, i) => 2 * lengthPx(radius, wholes[i]));
    }
    return extents.some((extent) => extent <= NO_EXTENT_PX);
  }

  function isClippedAway(element, style, position) {
    const { clipPath } = style;
    if (clipPath !== "none" && isShapeEmpty(clipPath, element)) return true;
    if (position !== "absolute" && position !== "fixed") return false;
    const clip = /^rect\(([^)]*)\)/.exec(style.clip);
    if (!clip) return false;
    const [top, right, bottom, left] = clip[1].split(/,? /).map(parseFloat);
    return bottom - top <= 1 || right - left <= 1;
  }

  const everything = { isCut: false, isPane: false };

  // What decides on an element's content: `inFlow`, `absolute` and `fixed` say what clips content of each kind of
  // position, `isDoubtful` that some box around it has no size or is out of reach, so that each text is to be measured.
  // `opacity`, `scale` and `blurPx` are those of all that is around it together.
  const start = {
    inFlow: everything, absolute: everything, fixed: everything, isDoubtful: false, isFixed: false, opacity: 1, scale: 1, blurPx: 0,
  };

  // What is left of an element's own paint after its opacity, its filters and its mask.
  function ownOpacity(style) {
    const { filter, maskImage } = style;
    let left = parseFloat(style.opacity);
    if (filter !== "none") {
      for (const [, value, unit] of filter.matchAll(/\bopacity\(([\d.e-]+)(%?)\)/g)) left *= parseFloat(value) / (unit ? 100 : 1);
    }
    if (maskImage !== "none" && !/url\(|image\(|image-set\(/.test(maskImage)) {
      const colours = maskImage.match(COLOUR) ?? [];
      if (colours.length) left *= Math.max(...colours.map((text) => colour(text).alpha));
    }
    return left;
  }

  const ownBlurPx = ({ filter }) => [...filter.matchAll(/\bblur\(([\d.e-]+)px\)/g)].reduce((sum, [, px]) => sum + parseFloat(px), 0);

  // How much smaller than its font size text in an element is drawn, by all transforms and zooms around it.
  function scaleOf(element, style, box, sight) {
    const inherited = style.zoom === "1" ? sight.scale : sight.scale * (parseFloat(style.zoom) || 1);
    if ((style.transform === "none" && style.scale === "none") || !(element instanceof HTMLElement)) return inherited;
    const laidOut = dom.outerWidth(element) * dom.outerHeight(element); // without zoom and transforms, which the box has
    return laidOut ? Math.sqrt((box.width * box.height) / laidOut) : inherited;
  }

  // The transforms of an element and of what it turns with, as one; the window's own side looks at positive z.
  function isTurnedAway(element, style) {
    let turned = new DOMMatrix();
    for (let at = element, steps = 0; at && steps < 20; at = dom.parent(at), steps++) {
      const own = at === element ? style : dom.type(at) === 1 ? getComputedStyle(at) : null;
      if (!own || (at !== element && own.transformStyle !== "preserve-3d")) break;
      turned = ownTurn(own).multiply(turned);
    }
    return turned.m33 < -0.001;
  }

  function ownTurn(style) {
    const rotate = /^(?:([xyz])|(\S+) (\S+) (\S+)) (\S+)deg$/.exec(style.rotate);
    const axis = rotate && (rotate[1] ? ["x", "y", "z"].map((name) => Number(name === rotate[1])) : rotate.slice(2, 5).map(Number));
    const turn = axis ? new DOMMatrix().rotateAxisAngle(...axis, parseFloat(rotate[5])) : new DOMMatrix();
    return style.transform === "none" ? turn : turn.multiply(new DOMMatrix(style.transform));
  }

  // The same for an element from its parent's; null: nothing in it is seen.
  function within(element, style, display, sight) {
    const { position } = style;
    const opacity = sight.opacity * ownOpacity(style);
    if (opacity <= UNSEEN_OPACITY) return null;
    const blurPx = sight.blurPx + ownBlurPx(style);
    const isSeenAlike = opacity === sight.opacity && blurPx === sight.blurPx;
    if (display === "inline" && position === "static") return isSeenAlike ? sight : { ...sight, opacity, blurPx };
    if (isClippedAway(element, style, position)) return null;
    if (style.backfaceVisibility === "hidden" && isTurnedAway(element, style)) return null;
    const isFixed = sight.isFixed || position === "fixed";
    const own = position === "fixed" ? sight.fixed : position === "absolute" ? sight.absolute : sight.inFlow;
    const { overflow } = style;
    const clips = overflow !== "visible" && display !== "inline" && !isRootOrBody(element);
    const box = dom.box(element);
    const scale = scaleOf(element, style, box, sight);
    const isDoubtful =
      sight.isDoubtful || isEmpty(box) || box.left + view.x < leftmost - FAR_PX || isOutside(box, isFixed);
    let inFlow = own;
    if (!own.isCut) {
      if (clips) inFlow = { isCut: box.width <= UNREADABLE_TEXT_PX || box.height <= UNREADABLE_TEXT_PX, isPane: true };
      if (isDoubtful && inFlow.isPane && isFarAway(style)) inFlow = everything;
    }
    let { absolute, fixed } = sight;
    if (inFlow !== absolute || inFlow !== fixed) {
      const isTransformed = style.transform !== "none";
      if (position !== "static" || isTransformed) absolute = inFlow;
      if (isTransformed) fixed = inFlow;
    }
    const isSame = inFlow === sight.inFlow && absolute === sight.absolute && fixed === sight.fixed;
    if (isSame && isSeenAlike && scale === sight.scale && isDoubtful === sight.isDoubtful && isFixed === sight.isFixed) return sight;
    return { inFlow, absolute, fixed, isDoubtful, isFixed, opacity, scale, blurPx };
  }

  const isRootOrBody = (element) => element === dom.root(document) || element === dom.body(document);

  // Whether a box of something that stands for itself (a picture, a field) can be seen.
  function showsBox(box, scope) {
    if (scope.inFlow.isCut) return false;
    if (box.width <= 1 || box.height <= 1) return false;
    if (!scope.isDoubtful && !isOutside(box, scope.isFixed)) return true;
    if (!isOutside(box, scope.isFixed)) return true;
    return scope.inFlow.isPane;
  }

  // Whether text directly in the scope's element has a size and a colour to be seen by; also notes in the scope
  // whether each of its texts is to be measured.
  function showsText(scope) {
    const { element, style, sight } = scope;
    if (sight.inFlow.isCut || style.visibility !== "visible" || style.webkitTextSecurity !== "none") return false;
    if (sight.blurPx > UNREADABLE_BLUR * parseFloat(style.fontSize)) return false;
    scope.isIndentedAway = parseFloat(style.textIndent) < -99;
    if (dom.namespace(element) === SVG) return isDrawn(style.fill, style.fillOpacity) || isDrawn(style.stroke, style.strokeOpacity);
    return parseFloat(style.fontSize) * sight.scale > UNREADABLE_TEXT_PX && !hasNoColour(scope);
  }

  function showsTextNode(node, scope) {
    const { sight, isIndentedAway } = scope;
    if (!sight.isDoubtful && !isIndentedAway) return true;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (isEmpty(box)) return false;
    return !isOutside(box, sight.isFixed) || (sight.inFlow.isPane && !isIndentedAway);
  }

  const colours = new Map();
  function colour(text) {
    let known = colours.get(text);
    if (!known) {
      const numbers = /^rgba?\(/.test(text) ? text.match(/[\d.]+/g).map(Number) : paintedAs(text);
      known = numbers ? { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 } : { rgb: null, alpha: 1 };
      colours.set(text, known);
    }
    return known;
  }

  // What a colour of another space (oklch, display-p3, ...) comes to on the screen: only painting it tells.
  let canvas = null;
  function paintedAs(text) {
    if (!CSS.supports("color", text)) return null;
    canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  }

  const isDrawn = (paint, opacity) => paint !== "none" && parseFloat(opacity) * colour(paint).alpha > UNSEEN_OPACITY;

  function hasNoColour(scope) {
    const { style } = scope;
    const behind = backgroundOf(scope);
    if (paintsOf(style).some((text) => standsOut(colour(text), behind))) return false;
    if (colour(style.webkitTextFillColor).alpha <= UNSEEN_OPACITY) return !takesColourFromBackground(scope);
    return style.mixBlendMode === "normal" && !hasOtherBehind(scope, behind.owner);
  }

  // What a text is painted in: its letters, their outlines, and the shadows that keep the form of a letter.
  function paintsOf({ fontSize, textShadow, webkitTextFillColor, webkitTextStrokeColor, webkitTextStrokeWidth }) {
    const outlines = parseFloat(webkitTextStrokeWidth) > 0 ? [webkitTextStrokeColor] : [];
    const shadows = [...textShadow.matchAll(SHADOW)].filter(([, , blur]) => parseFloat(blur) <= 2 * UNREADABLE_BLUR * parseFloat(fontSize));
    return [webkitTextFillColor, ...outlines, ...shadows.map(([, paint]) => paint)];
  }

  // Whether a colour can be told from what is behind it, or either of them is not certain.
  function standsOut({ rgb, alpha }, behind) {
    if (alpha <= UNSEEN_OPACITY) return false;
    return !rgb || !behind || behind.rgb.some((part, i) => Math.abs(part - rgb[i]) * alpha > UNSEEN_DIFFERENCE);
  }

  function takesColourFromBackground(scope) {
    for (let around = scope, steps = 0; around.element && steps < 8; around = around.outer, steps++) {
      if (around.style.backgroundClip.includes("text")) return true;
    }
    return false;
  }

  // The colour behind an element's text and the scope that has it; null where it is not certain.
  function backgroundOf(scope) {
    let around = scope;
    let found = null;
    for (; around.background === undefined; around = around.outer) {
      if (!around.element) {
        found = rootStyles.some((style) => style.colorScheme.includes("dark")) ? null : { rgb: WHITE, owner: around };
        break;
      }
      const { style } = around;
      const own = colour(style.backgroundColor);
      if (style.backgroundImage !== "none") break;
      if (own.alpha === 1 && own.rgb) {
        found = { rgb: own.rgb, owner: around };
        break;
      }
      // What is placed over something else has that behind it, not its parent's background.
      if (own.alpha !== 0 || style.position === "absolute" || style.position === "fixed") break;
    }
    if (around.background !== undefined) found = around.background;
    for (let asked = scope; asked !== around; asked = asked.outer) asked.background = found;
    around.background = found;
    return found;
  }

  const paints = (style) => style.backgroundImage !== "none" || colour(style.backgroundColor).alpha !== 0;

  function hasOtherBehind(scope, owner) {
    for (let around = scope; around.element; around = around === owner ? owner.outer : around.outer) {
      for (const side of ["::before", "::after"]) {
        const style = getComputedStyle(around.element, side);
        if (style.content !== "none" && style.content !== "normal" && paints(style)) return true;
      }
      if (around === owner) break;
    }
    const others = painted(owner);
    if (others === null) return true;
    const own = dom.box(scope.element);
    return others.some(
      ({ element, box }) =>
        box.left < own.right && box.right > own.left && box.top < own.bottom && box.bottom > own.top &&
        !dom.contains(element, scope.element) && !dom.contains(scope.element, element),
    );
  }

  // What paints something of its own within an owner's box; null where that is too much to look through.
  const paintedIn = new Map();
  let elementsLeft = MAX_ELEMENTS_BEHIND;
  function painted(owner) {
    if (!paintedIn.has(owner)) paintedIn.set(owner, findPainted(owner.element ?? dom.root(document)));
    return paintedIn.get(owner);
  }

  function findPainted(owner) {
    const all = dom.queryAll(owner, "*");
    elementsLeft -= all.length;
    if (elementsLeft < 0) return null;
    const found = [];
    for (let i = 0; i < all.length; i++) {
      if (PICTURES.test(dom.name(all[i])) || paints(getComputedStyle(all[i]))) found.push({ element: all[i], box: dom.box(all[i]) });
    }
    return found.length > MAX_PAINTED ? null : found;
  }

  return { start, within, showsBox, showsTextNode, showsText };
}

// Tells what the eye can see, or come to see by scrolling, from what is only in the document.
function (parts) {
  const { dom } = parts;
  const SMALLEST_TEXT_PX = 2;
  const FAR_PX = 900;
  const MOST_ELEMENTS_BEHIND = 50_000;
  const MOST_PAINTED = 500;
  const PICTURES = /^(img|video|canvas|svg|iframe|object|embed)$/;
  const SVG = "http://www.w3.org/2000/svg";
  const WHITE = [255, 255, 255];
  const view = { width: innerWidth, height: innerHeight, x: scrollX, y: scrollY };
  const rootStyles = [dom.root(document), dom.body(document)].filter(Boolean).map((element) => getComputedStyle(element));
  const cutsOffRight = rootStyles.some((style) => /^(hidden|clip)/.test(style.overflowX));
  const leftmost = rootStyles[0]?.direction === "rtl" ? view.width - dom.scrollWidth(dom.root(document)) : 0;
  const range = new Range();

  const isEmpty = (box) => box.width === 0 || box.height === 0;

  // Beyond where any scrolling reaches: left of the page or above it, or outside the window for what stays in place.
  function isOutside(box, isFixed) {
    if (isFixed) return box.right <= 0 || box.bottom <= 0 || box.left >= view.width || box.top >= view.height;
    if (box.right + view.x <= leftmost || box.bottom + view.y <= 0) return true;
    return cutsOffRight && box.left + view.x >= view.width;
  }

  // `left: -9999px` hides, also in a carousel, where being outside does not.
  function isFarAway(style) {
    const far = (value) => parseFloat(value) <= -FAR_PX;
    if (style.position !== "static" && (far(style.left) || far(style.top))) return true;
    return far(style.marginLeft) || far(style.marginTop) || far(style.textIndent);
  }

  function isClippedAway(style, position) {
    const { clipPath } = style;
    if (clipPath !== "none") {
      if (/^(circle|ellipse)\(0(px|%)?( |\))/.test(clipPath)) return true;
      const inset = /^inset\(([^)]*)\)/.exec(clipPath);
      if (inset) {
        const sides = inset[1].split(" round ")[0].split(" ");
        const [top, right = top, bottom = top, left = right] = sides.map((side) => (side.endsWith("%") ? parseFloat(side) : 0));
        if (top + bottom >= 100 || left + right >= 100) return true;
      }
      const corners = /^polygon\((?:\w+, ?)?([^)]*)\)/.exec(clipPath);
      if (corners && corners[1].split(",").every((corner) => !/[1-9]/.test(corner))) return true;
    }
    if (position !== "absolute" && position !== "fixed") return false;
    const clip = /^rect\(([^)]*)\)/.exec(style.clip);
    if (!clip) return false;
    const [top, right, bottom, left] = clip[1].split(/,? /).map(parseFloat);
    return bottom - top <= 1 || right - left <= 1;
  }

  const everything = { isCut: false, isPane: false };

  // What decides on an element's content: `inFlow`, `absolute` and `fixed` say what clips content of each kind of
  // position, `isDoubtful` that some box around it has no size or is out of reach, so that each text is to be measured.
  const start = { inFlow: everything, absolute: everything, fixed: everything, isDoubtful: false, isFixed: false };

  // The same for an element from its parent's; null: nothing in it is seen.
  function within(element, style, display, sight) {
    const { opacity, position } = style;
    if (opacity !== "1" && parseFloat(opacity) < 0.02) return null;
    if (display === "inline" && position === "static") return sight;
    if (isClippedAway(style, position)) return null;
    const isFixed = sight.isFixed || position === "fixed";
    const own = position === "fixed" ? sight.fixed : position === "absolute" ? sight.absolute : sight.inFlow;
    const { overflow } = style;
    const clips = overflow !== "visible" && display !== "inline" && !isRootOrBody(element);
    const box = dom.box(element);
    const isDoubtful =
      sight.isDoubtful || isEmpty(box) || box.left + view.x < leftmost - FAR_PX || isOutside(box, isFixed);
    let inFlow = own;
    if (!own.isCut) {
      if (clips) inFlow = { isCut: box.width <= 1 || box.height <= 1, isPane: true };
      if (isDoubtful && inFlow.isPane && isFarAway(style)) inFlow = everything;
    }
    let { absolute, fixed } = sight;
    if (inFlow !== absolute || inFlow !== fixed) {
      const isTransformed = style.transform !== "none";
      if (position !== "static" || isTransformed) absolute = inFlow;
      if (isTransformed) fixed = inFlow;
    }
    const isSame = inFlow === sight.inFlow && absolute === sight.absolute && fixed === sight.fixed;
    if (isSame && isDoubtful === sight.isDoubtful && isFixed === sight.isFixed) return sight;
    return { inFlow, absolute, fixed, isDoubtful, isFixed };
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
    if (sight.inFlow.isCut || style.visibility !== "visible") return false;
    scope.isIndentedAway = parseFloat(style.textIndent) < -99;
    if (dom.namespace(element) === SVG) return style.fill !== "none" || style.stroke !== "none";
    return parseFloat(style.fontSize) >= SMALLEST_TEXT_PX && !hasNoColour(scope);
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
      const numbers = /^rgba?\(/.test(text) ? text.match(/[\d.]+/g).map(Number) : null;
      known = numbers ? { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 } : { rgb: null, alpha: dom.isClear(text) ? 0 : 1 };
      colours.set(text, known);
    }
    return known;
  }

  function hasNoColour(scope) {
    const { style } = scope;
    const fill = colour(style.webkitTextFillColor);
    if (fill.alpha === 0) {
      return style.textShadow === "none" && !(parseFloat(style.webkitTextStrokeWidth) > 0) && !takesColourFromBackground(scope);
    }
    if (!fill.rgb || fill.alpha < 1) return false;
    const behind = backgroundOf(scope);
    if (behind === null || behind.rgb.some((part, i) => Math.abs(part - fill.rgb[i]) > 3)) return false;
    if (style.textShadow !== "none" || parseFloat(style.webkitTextStrokeWidth) > 0 || style.mixBlendMode !== "normal") return false;
    return !hasOtherBehind(scope, behind.owner);
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
  let elementsLeft = MOST_ELEMENTS_BEHIND;
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
    return found.length > MOST_PAINTED ? null : found;
  }

  return { start, within, showsBox, showsTextNode, showsText };
}

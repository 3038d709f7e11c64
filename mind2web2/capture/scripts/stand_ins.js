// Words for what shows something without being text: pictures, form fields, formulas.
function (parts) {
  const { dom } = parts;
  const MAX_OPTIONS = 100;
  const inputValue = dom.getter(HTMLInputElement, "value");
  const inputType = dom.getter(HTMLInputElement, "type");
  const inputChecked = dom.getter(HTMLInputElement, "checked");
  const areaValue = dom.getter(HTMLTextAreaElement, "value");
  const options = dom.getter(HTMLSelectElement, "options");

  const bracketed = (kind, text) => (text ? `[${kind}: ${text}]` : "");
  const label = (element) => dom.oneLine(dom.attribute(element, "aria-label"));
  const labelOrTitle = (element) => label(element) || dom.oneLine(dom.attribute(element, "title"));

  // The name of a field that no text beside it names.
  const onlyLabel = (element) => (element.labels?.length ? "" : label(element));
  const withLabel = (element, words) => (words && onlyLabel(element) ? `${onlyLabel(element)} ${words}` : words);

  const field = (element, value) => {
    const shown = dom.clean(value).trim();
    return withLabel(element, bracketed("input", shown)) || bracketed("input", shown) || bracketed("placeholder", dom.oneLine(dom.attribute(element, "placeholder")));
  };

  function input(element) {
    const type = inputType(element);
    switch (type) {
      case "hidden":
      case "password":
        return "";
      case "checkbox":
        return `${inputChecked(element) ? "[x]" : "[ ]"} ${onlyLabel(element)}`.trim();
      case "radio":
        return `${inputChecked(element) ? "(x)" : "( )"} ${onlyLabel(element)}`.trim();
      case "submit":
      case "reset":
      case "button":
        return bracketed("button", dom.oneLine(inputValue(element)) || { submit: "Submit", reset: "Reset" }[type] || label(element));
      case "image":
        return bracketed("button", dom.oneLine(dom.attribute(element, "alt")) || labelOrTitle(element));
      case "file":
        return bracketed("file", inputValue(element).split(/[\\/]/).at(-1));
      default:
        return field(element, inputValue(element));
    }
  }

  function select(element) {
    const all = Array.from(options(element)).filter((option) => getComputedStyle(option).display !== "none");
    const text = (option) => dom.oneLine(option.label || dom.textContent(option));
    const chosen = all.filter((option) => option.selected).map(text).filter(Boolean);
    const named = all.map(text).filter(Boolean);
    const more = named.length > MAX_OPTIONS ? `; and ${named.length - MAX_OPTIONS} more` : "";
    const rest = named.length > chosen.length ? `; options: ${named.slice(0, MAX_OPTIONS).join("; ")}${more}` : "";
    return chosen.length || rest ? withLabel(element, `[select: ${chosen.join("; ") || "nothing"}${rest}]`) : "";
  }

  function gauge(element, kind) {
    const max = dom.attribute(element, "max") ?? "1";
    const value = dom.attribute(element, "value");
    return value === null ? "" : `[${kind}: ${dom.oneLine(value)} of ${dom.oneLine(max)}]`;
  }

  function svg(element) {
    let title = label(element);
    for (let child = dom.first(element); child && !title; child = dom.next(child)) {
      if (dom.type(child) === 1 && dom.name(child) === "title") title = dom.oneLine(dom.textContent(child));
    }
    return bracketed("image", title);
  }

  // TeX where the page brings it, else the formula written on one line.
  function math(element) {
    const tex = dom.query(element, 'annotation[encoding*="tex" i]');
    const source = tex ? dom.oneLine(dom.textContent(tex)) : dom.oneLine(dom.attribute(element, "alttext"));
    if (source) return source.replace(/^\{\\(?:display|text)style ?(.*)\}$/, "$1").trim();
    return linear(element, 0).replace(/\s+/g, " ").trim();
  }

  const grouped = (text) => (/^[\p{L}\p{N}.,]*$/u.test(text) ? text : `(${text})`);

  function linear(node, depth) {
    if (dom.type(node) === 3) return dom.clean(dom.data(node)).trim();
    if (dom.type(node) !== 1 || depth > 60) return "";
    const name = dom.name(node);
    if (/^annotation/.test(name)) return "";
    const pieces = [];
    for (let child = dom.first(node); child; child = dom.next(child)) {
      const piece = linear(child, depth + 1);
      if (piece || dom.type(child) === 1) pieces.push(piece);
    }
    const [a = "", b = "", c = ""] = pieces;
    switch (name) {
      case "mfrac":
        return `${grouped(a)}/${grouped(b)}`;
      case "msup":
      case "mover":
        return `${grouped(a)}^${grouped(b)}`;
      case "msub":
      case "munder":
        return `${a}_${grouped(b)}`;
      case "msubsup":
      case "munderover":
        return `${a}_${grouped(b)}^${grouped(c)}`;
      case "msqrt":
        return `sqrt(${pieces.join("")})`;
      case "mroot":
        return `root_${grouped(b)}(${a})`;
      case "mtable":
        return `(${pieces.join("; ")})`;
      case "mtr":
        return pieces.join(", ");
      case "mo":
        return /^[=+\u2212<>\u2264\u2265\u2260\u2248\u00b1\u2192]$/.test(a) ? ` ${a} ` : a;
      case "mtext":
        return ` ${a} `;
      default:
        return pieces.reduce(beside, "");
    }
  }

  // 3 and a half is not 31/2, and 2 to the 3rd times 5 is not 2 to the 35th.
  function beside(text, piece) {
    const isApart = /[/^_][\p{L}\p{N}]+$/u.test(text) ? /^[\p{L}\p{N}]/u.test(piece) : /\p{N}$/u.test(text) && /^\p{N}+\//u.test(piece);
    return isApart ? `${text} ${piece}` : text + piece;
  }

  // Formulas drawn by scripts are heaps of single signs; beside them they keep the formula itself.
  function drawnMath(element, name) {
    if (name !== "mjx-container" && name !== "span") return "";
    if (name === "span" && !/(^|\s)(katex|katex-display|MathJax|mwe-math-element)(\s|$)/.test(dom.attribute(element, "class") ?? "")) return "";
    const formula = dom.query(element, "math");
    return formula ? math(formula) : "";
  }

  // The words for an element that shows something else than its children; null where it shows those.
  function of(element, name) {
    switch (name) {
      case "img":
        return bracketed("image", dom.oneLine(dom.attribute(element, "alt")) || labelOrTitle(element));
      case "input":
        return input(element);
      case "textarea":
        return field(element, areaValue(element));
      case "select":
        return select(element);
      case "meter":
      case "progress":
        return gauge(element, name);
      case "canvas":
        return bracketed("image", labelOrTitle(element));
      case "video":
      case "audio":
        return bracketed(name, labelOrTitle(element));
      case "math":
        return math(element);
      default:
        return drawnMath(element, name) || null;
    }
  }

  // A name for an element that shows no text at all: an icon's, a link's around one.
  function nameOf(element, name, role) {
    const kind = name === "button" || role === "button" ? "button" : name === "a" || role === "link" ? "link" : "image";
    return bracketed(kind, labelOrTitle(element));
  }

  // The text that stands for a drawn icon to those who cannot see it, where the element draws one.
  function hiddenNameOf(element, style) {
    const text = element instanceof HTMLElement ? dom.oneLine(dom.innerText(element)) : "";
    if (!text || text.length > 150 || !/[\p{L}\p{N}]/u.test(text)) return "";
    const box = dom.box(element);
    if (box.width < 8 || box.height < 8) return "";
    const drawsItself = (own) => own.backgroundImage !== "none" || own.maskImage !== "none";
    const icon = dom.query(element, "svg, img, canvas, i");
    const isDrawn = drawsItself(style) || drawsItself(getComputedStyle(element, "::before"))
      || (icon && dom.box(icon).width > 4 && dom.box(icon).height > 4);
    return isDrawn ? `[image: ${text}]` : "";
  }

  return { of, svg, label, nameOf, hiddenNameOf };
}

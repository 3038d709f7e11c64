// Reads everything visible in a document, in the order and with the structure of what is shown. Walks the flattened
// tree (shadow roots, slots) without recursion, since a page can nest as deep as it likes.
function (parts, maxChars, maxNodes) {
  const { dom, visibility, generated, mayGenerate, standIns, tableParts, raised, rowItems } = parts;
  const { EDGE } = parts.writer;
  const SVG = "http://www.w3.org/2000/svg";
  const UNREAD = new Set(["script", "style", "template", "noscript", "noframes", "noembed", "head", "meta", "link", "base", "title",
    "datalist", "param", "source", "track", "rp", "col", "colgroup", "area", "desc", "defs", "symbol", "clipPath", "mask", "pattern",
    "linearGradient", "radialGradient", "metadata", "marker", "filter", "annotation", "annotation-xml", "option", "optgroup"]);
  const FRAMES = new Set(["iframe", "frame", "object", "embed"]);
  const SPACED = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "menu", "dir", "dl", "table", "blockquote", "pre",
    "figure", "section", "article", "header", "footer", "main", "nav", "aside", "form", "fieldset", "details", "hr", "address"]);
  const WORDS = new Set(["span", "a", "b", "i", "em", "strong", "small", "label", "button", "time", "sup", "sub", "abbr", "code", "cite",
    "q", "s", "u", "del", "ins", "mark", "bdi", "bdo", "data", "font", "kbd", "samp", "var", "tt", "big", "text"]);
  const BOXES = new Set(["inline-block", "inline-flex", "inline-grid", "inline-table"]);
  const INLINE = new Set(["inline", "ruby", "ruby-text", "ruby-base", "ruby-text-container", "math", "contents", ""]);

  const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

  const writer = new parts.writer.Writer(maxChars);
  const frameIds = dom.ownMap("frameIds");
  const closedRoots = dom.ownMap("closedRoots");
  let passwordFields = 0;
  const unreadFrames = [];

  // What an element passes on to what is in it.
  class Scope {
    constructor(outer, element, style, display) {
      this.outer = outer;
      this.element = element;
      this.style = style;
      this.display = display;
      this.sight = outer?.sight ?? visibility.start;
      this.isStruck = outer?.isStruck ?? false;
      this.isInHeading = outer?.isInHeading ?? false;
      this.isInShadow = outer?.isInShadow ?? false;
      this.list = outer?.list ?? null;
      this.table = outer?.table ?? null;
      this.rowGroup = outer?.rowGroup ?? null;
      this.cells = null; // of a row that keeps its empty items: the sinks of its items
      // Known once asked for:
      this.isShown = null;
      this.isIndentedAway = false;
      this.background = undefined;
    }
  }

  const outermost = new Scope(null, null, null, "block");

  // ---- text

  function readText(node, scope) {
    const data = dom.data(node);
    if (!data) return;
    const { whiteSpace } = scope.style;
    const isRaw = whiteSpace === "pre" || whiteSpace === "pre-wrap" || whiteSpace === "break-spaces";
    if (!isRaw && !/\S/.test(data)) {
      writer.text(" ", node, false, false);
      return;
    }
    scope.isShown ??= visibility.showsText(scope);
    if (!scope.isShown || !visibility.showsTextNode(node, scope)) return;
    const cleaned = dom.clean(data);
    const text = isTurnedAround(cleaned, scope.style) ? [...cleaned].reverse().join("") : cleaned;
    if (whiteSpace === "pre-line") {
      text.split("\n").forEach((line, i) => {
        if (i) writer.breakLine();
        writer.text(line, node, scope.isStruck, false);
      });
    } else writer.text(isRaw ? text.replace(/\r\n?/g, "\n") : text, node, scope.isStruck, isRaw);
  }

  // Shown from its last letter to its first, as pages do with addresses that machines are not to find.
  function isTurnedAround(text, { direction, unicodeBidi }) {
    return direction === "rtl" && unicodeBidi.endsWith("override") && !RIGHT_TO_LEFT.test(text);
  }

  function writePseudo(element, side, scope) {
    const pseudo = generated.pseudo(element, side);
    if (!pseudo || scope.sight.inFlow.isCut) return;
    const isBlock = !INLINE.has(pseudo.display) && !BOXES.has(pseudo.display) && !isRowLike(scope.display);
    if (pseudo.isApart || isBlock) {
      if (pseudo.text.trim()) writer.token(pseudo.text.trim().replace(/\s+/g, " "), scope.isStruck);
    } else writer.text(pseudo.text, null, scope.isStruck, false);
  }

  const isRowLike = (display) => /(flex|grid)$/.test(display);

  // ---- elements

  // Returns what is to be walked next, as { next | nodes, scope, leave }, or null for nothing.
  function enter(element, outer) {
    const name = dom.name(element);
    if (UNREAD.has(name)) return null;
    const style = getComputedStyle(element);
    const { display } = style;
    if (display === "none") return null;
    const scope = new Scope(outer, element, style, display);
    if (display === "contents") {
      scope.display = outer.display;
      return walk(scope, name, null);
    }
    const sight = visibility.within(element, style, display, outer.sight);
    if (sight === null) {
      outer.cells?.push(writer.emptySink());
      return null;
    }
    scope.sight = sight;
    if (!outer.cells) return enterSeen(element, name, scope, outer);
    writer.openSink();
    const entered = enterSeen(element, name, scope, outer);
    const close = () => outer.cells.push(writer.closeSink());
    if (!entered) close();
    return entered && { ...entered, leave: () => (entered.leave?.(), close()) };
  }

  function enterSeen(element, name, scope, outer) {
    const role = dom.attribute(element, "role");
    if (name === "input" && dom.attribute(element, "type")?.toLowerCase() === "password") passwordFields++;
    scope.isStruck = isStruck(name, scope.style, scope.display, outer);
    if (FRAMES.has(name) && readFrame(element, name, scope)) return null;
    const standIn = dom.namespace(element) === SVG ? null : standIns.of(element, name);
    if (standIn !== null) writeStandIn(element, standIn, scope);
    else if (name === "br") writer.breakLine();
    else if (name === "hr") writeRule(scope);
    else return enterBox(element, name, role, scope, outer);
    return null;
  }

  function isStruck(name, style, display, outer) {
    if (name === "del" || style.textDecorationLine.includes("line-through")) return true;
    // A line is drawn through what flows in its block, not through boxes in it.
    return outer.isStruck && !BOXES.has(display);
  }

  function isSeen(element, scope) {
    return scope.style.visibility === "visible" && visibility.showsBox(dom.box(element), scope.sight);
  }

  function writeStandIn(element, text, scope) {
    if (!isSeen(element, scope)) return;
    if (!text) return writer.cross(EDGE.box); // a picture without a word keeps apart what is beside it
    const isBlock = !INLINE.has(scope.display) && !BOXES.has(scope.display);
    if (isBlock) writer.breakBlock(1);
    const lines = text.split("\n");
    lines.forEach((line, i) => {
      if (i) writer.breakLine();
      writer.token(line, scope.isStruck);
    });
    if (isBlock) writer.breakBlock(1);
  }

  function writeRule(scope) {
    if (scope.style.visibility !== "visible" || !visibility.showsBox(dom.box(scope.element), scope.outer.sight)) return;
    writer.breakBlock(2);
    writer.wholeLine("---");
    writer.breakBlock(2);
  }

  // Leaves a mark that page text cannot hold, in whose place the frame's text is put.
  function readFrame(element, name, scope) {
    const id = frameIds.get(element);
    if (id === undefined && name !== "iframe" && name !== "frame") return name === "embed";
    if (!isSeen(element, scope) || dom.innerWidth(element) <= 1 || dom.innerHeight(element) <= 1) return true;
    writer.breakBlock(2);
    if (id === undefined) unreadFrames.push(dom.attribute(element, "src") ?? "");
    else writer.wholeLine(`\u0001${id}\u0001`);
    writer.breakBlock(2);
    return true;
  }

  function enterBox(element, name, role, scope, outer) {
    const isClosed = name === "details" && !dom.hasAttribute(element, "open");
    if (isClosed) return { nodes: summaryOf(element), at: 0, scope, leave: null };
    const leaves = [];
    const edge = edgeOf(name, scope, outer);
    cross(edge);
    if (name === "tspan" && isLineOfDrawing(element)) writer.breakBlock(1);
    if (scope.isStruck && !outer.isStruck) leaves.push(() => writer.endStruck());
    if (scope.table && outer.table === scope.table) tableParts.enterTablePart(writer, element, name, role, scope, leaves);
    if (tableParts.isTable(name, role, scope.display)) tableParts.enterTable(writer, element, name, role, scope, leaves);
    else if (isHeading(name, role)) enterHeading(element, name, scope, leaves);
    else enterList(element, name, role, scope, leaves);
    if (isRowLike(scope.display)) enterRow(element, scope, leaves);
    raised.enterRaised(writer, element, raised.placeOf(name, scope.style), leaves);
    const before = writer.chars;
    const drawn = name === "svg" ? standIns.svg(element) : role === "img" ? asImage(element) : "";
    if (drawn && isSeen(element, scope)) writer.token(drawn, scope.isStruck);
    return walk(scope, name, () => {
      if (writer.chars === before) nameSilent(element, name, role, scope);
      for (let i = leaves.length - 1; i >= 0; i--) leaves[i]();
      cross(edge);
    });
  }

  function enterRow(element, scope, leaves) {
    const columns = rowItems.columnsOf(element, scope.style);
    if (!columns) return;
    scope.cells = [];
    leaves.push(() => rowItems.write(writer, scope.cells, columns));
  }

  const asImage = (element) => {
    const label = standIns.label(element);
    return label && `[image: ${label}]`;
  };

  // A name for what has shown no text at all, such as a button that is a picture from the style sheet.
  function nameSilent(element, name, role, scope) {
    if (scope.style.visibility !== "visible") return;
    const isWord = WORDS.has(name);
    const isNamed = dom.hasAttribute(element, "aria-label") || (isWord && dom.hasAttribute(element, "title"));
    let text = isNamed ? standIns.nameOf(element, name, role) : "";
    if (!text && (isWord || role === "button" || role === "link") && dom.first(element)) text = standIns.hiddenNameOf(element, scope.style);
    if (text && isSeen(element, scope)) writer.token(text, scope.isStruck);
  }

  // How an element is set apart from what is before and after it: what edge it has, and by how many lines.
  function edgeOf(name, scope, outer) {
    const { display, style } = scope;
    if (INLINE.has(display)) return { kind: EDGE.inline, lines: 0 };
    if (BOXES.has(display)) return { kind: EDGE.box, lines: 0 };
    const isItem = isRowLike(outer.display);
    const isPlaced = isItem || style.float !== "none" || style.position === "absolute" || style.position === "fixed";
    if (!isPlaced) return { kind: EDGE.none, lines: SPACED.has(name) ? 2 : 1 };
    return { kind: EDGE.item, lines: WORDS.has(name) ? 0 : isItem || !SPACED.has(name) ? 1 : 2 };
  }

  // A drawing's text goes back to where its first line begins; a kerned letter goes on to a place of its own.
  function isLineOfDrawing(span) {
    const begins = dom.attribute(span, "x");
    return begins !== null && begins === dom.attribute(dom.query(dom.parent(span), "tspan"), "x");
  }

  function cross({ kind, lines }) {
    writer.cross(kind);
    if (lines) writer.breakBlock(lines);
  }

  function summaryOf(details) {
    for (let child = dom.first(details); child; child = dom.next(child)) {
      if (dom.type(child) === 1 && dom.name(child) === "summary") return [child];
    }
    return [];
  }

  // ---- headings, lists, quotes

  const isHeading = (name, role) => /^h[1-6]$/.test(name) ? role === null || role === "heading" : role === "heading";

  function enterHeading(element, name, scope, leaves) {
    if (scope.isInHeading) return;
    scope.isInHeading = true;
    const level = Number(dom.attribute(element, "aria-level")) || (name[0] === "h" ? Number(name[1]) : 2);
    const hashes = "#".repeat(Math.min(Math.max(Math.round(level), 1), 6));
    writer.breakBlock(2);
    writer.openSink();
    leaves.push(() => {
      const { lines, hasTable } = writer.closeSink();
      writer.breakBlock(2);
      const texts = lines.map((line) => line.text).filter(Boolean);
      if (texts.length && texts.length < 8 && !hasTable) writer.wholeLine(`${hashes} ${texts.join(" ")}`);
      else for (const line of lines) writer.wholeLine(line.text, line.lead);
      writer.sink.hasHeading ||= texts.length > 0;
      writer.breakBlock(2);
    });
  }

  function enterList(element, name, role, scope, leaves) {
    const isPlain = role === null || role === "list" || role === "listitem";
    if (((name === "ul" || name === "menu" || name === "dir") && isPlain) || (role === "list" && name !== "ol")) {
      scope.list = { isNumbered: false };
    } else if (name === "ol" && isPlain) {
      scope.list = numberedList(element);
    } else if ((name === "li" && isPlain) || role === "listitem") {
      enterItem(element, name, scope, leaves);
    } else if (name === "dd") {
      writer.openPrefix(": ", "  ");
      leaves.push(() => writer.closePrefix());
    } else if (name === "blockquote") {
      writer.openPrefix("> ", "> ");
      leaves.push(() => writer.closePrefix());
      leaves.push(() => writer.breakBlock(2));
    } else if (name === "pre") {
      enterCode(scope, leaves);
    }
  }

  function numberedList(element) {
    const isReversed = dom.hasAttribute(element, "reversed");
    let start = Number.parseInt(dom.attribute(element, "start") ?? "", 10);
    if (Number.isNaN(start)) start = isReversed ? itemsOf(element) : 1;
    return { isNumbered: true, next: start, step: isReversed ? -1 : 1 };
  }

  function itemsOf(list) {
    let items = 0;
    for (let child = dom.first(list); child; child = dom.next(child)) if (dom.type(child) === 1 && dom.name(child) === "li") items++;
    return items;
  }

  function enterItem(element, name, scope, leaves) {
    const { list, style } = scope;
    scope.list = null;
    let value = null;
    if (list?.isNumbered) {
      const own = name === "li" ? Number.parseInt(dom.attribute(element, "value") ?? "", 10) : Number.NaN;
      value = Number.isNaN(own) ? list.next : own;
      list.next = value + list.step;
    }
    const marker = style.visibility === "visible" ? generated.marker(style, value) : "- ";
    writer.openPrefix(marker, " ".repeat(Math.min(marker.length, 4)));
    leaves.push(() => writer.closePrefix());
  }

  function enterCode(scope, leaves) {
    if (writer.sink.isTight || !scope.style.whiteSpace.startsWith("pre") || scope.sight.inFlow.isCut) return;
    const { sink } = writer;
    const before = writer.chars;
    writer.wholeLine("```");
    const opened = sink.lines.length;
    leaves.push(() => {
      writer.endLine(sink);
      if (sink.lines.slice(opened).some((line) => line.text.trim())) {
        sink.blockBreak = 1;
        sink.newlines = 0;
        writer.wholeLine("```");
      } else {
        sink.lines.length = opened - 1;
        writer.chars = before;
      }
      writer.breakBlock(2);
    });
  }

  // ---- the walk

  function walk(scope, name, leave) {
    const { element } = scope;
    if (scope.style.contentVisibility === "hidden") return { next: null, nodes: null, at: 0, scope, leave };
    const root = dom.openRoot(element) ?? closedRoots.get(element) ?? null;
    if (root) scope.isInShadow = true;
    const isStyled = scope.isInShadow || mayGenerate(element, name);
    if (isStyled) writePseudo(element, "::before", scope);
    const after = isStyled ? () => leaveStyled(scope, leave) : leave;
    const slotted = name === "slot" ? dom.assigned(element) : null;
    if (slotted?.length) return { next: null, nodes: slotted, at: 0, scope, leave: after };
    return { next: dom.first(root ?? element), nodes: null, at: 0, scope, leave: after };
  }

  function leaveStyled(scope, leave) {
    writePseudo(scope.element, "::after", scope);
    leave?.();
  }

  function read() {
    const open = [];
    const root = dom.root(document);
    const entered = root && enter(root, outermost);
    if (entered) open.push(entered);
    let nodes = 0;
    while (open.length) {
      const top = open.at(-1);
      const isCut = writer.isFull || nodes > maxNodes;
      const node = isCut ? null : top.nodes ? top.nodes[top.at++] : top.next;
      if (!node) {
        open.pop();
        top.leave?.();
        continue;
      }
      if (!top.nodes) top.next = dom.next(node);
      nodes++;
      const type = dom.type(node);
      if (type === 3) readText(node, top.scope);
      else if (type === 1) {
        const entered = enter(node, top.scope);
        if (entered) open.push(entered);
      }
    }
    return nodes > maxNodes || writer.isFull;
  }

  const isCut = read();
  const text = writer.finish();
  return {
    text: text.slice(0, maxChars),
    title: dom.oneLine(dom.title(document)),
    is_cut: isCut || text.length > maxChars,
    unread_frames: unreadFrames,
    password_fields: passwordFields,
  };
}

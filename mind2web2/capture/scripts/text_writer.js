// Puts pieces of text into lines as Markdown: breaks, indentation of lists and quotes, struck text. Pieces that go
// into a table's cell or a heading are collected in a sink of their own.
function (parts) {
  const { dom } = parts;
  const DEEPEST_INDENT = 12;
  const LONGEST_JOINED_LINE = 240;
  const TAIL_CHARS = 24;

  const newSink = (isTight) => ({
    lines: [], // { lead, text }: the lead holds list markers and indentation
    line: null, // the open line's text
    tail: "", // its last characters: to look at the line itself would flatten it at each piece
    lead: "",
    hasSpace: false, // white space came after the open line's last character
    blockBreak: 0, // 1: a new line, 2: a blank line between
    newlines: 0, // line breaks that the text itself asks for
    isStruckOpen: false,
    prefixes: [],
    isTight,
    hasTable: false,
    lastNode: null, // the text node that the open line's last character came from
    edge: 0, // what was crossed since then, see EDGE
  });

  // Between two pieces of text: nothing, an inline element's edge, an inline box's edge, the edge of an item that its
  // container places itself (flex, grid, float, table cell), which only geometry can tell to be beside or below.
  const EDGE = { none: 0, inline: 1, box: 2, item: 3 };

  const range = new Range();
  const characterBox = (node, index) => {
    range.setStart(node, index);
    range.setEnd(node, index + 1);
    return range.getBoundingClientRect();
  };

  const fontSize = (node) => {
    const around = dom.parent(node);
    return Number.parseFloat(getComputedStyle(dom.type(around) === 1 ? around : around.host).fontSize);
  };

  class Writer {
    constructor(maxChars) {
      this.sink = newSink(false);
      this.outer = [];
      this.maxChars = maxChars;
      this.chars = 0;
    }

    get isFull() {
      return this.chars > this.maxChars;
    }

    openSink() {
      this.outer.push(this.sink);
      this.sink = newSink(true);
    }

    emptySink() {
      return newSink(true);
    }

    // Returns the closed sink, whose lines are complete.
    closeSink() {
      const closed = this.sink;
      this.endLine(closed);
      this.sink = this.outer.pop();
      return closed;
    }

    finish() {
      while (this.outer.length) {
        const closed = this.closeSink();
        for (const line of closed.lines) this.wholeLine(line.text, line.lead);
      }
      this.endLine(this.sink);
      return this.sink.lines.map((line) => (line.lead + line.text).trimEnd()).join("\n").replace(/\n{3,}/g, "\n\n");
    }

    breakBlock(size) {
      const { sink } = this;
      sink.blockBreak = Math.max(sink.blockBreak, sink.isTight || sink.prefixes.length ? Math.min(size, 1) : size);
      sink.hasSpace = false;
    }

    breakLine() {
      this.sink.newlines++;
      this.sink.hasSpace = false;
    }

    cross(edge) {
      if (edge > this.sink.edge) this.sink.edge = edge;
    }

    openPrefix(first, rest) {
      this.breakBlock(1);
      this.sink.prefixes.push({ first, rest, isUsed: false });
    }

    closePrefix() {
      this.breakBlock(1);
      this.endLine(this.sink);
      this.sink.prefixes.pop();
    }

    // Text between white space that is kept (`isRaw`) or collapsed.
    text(text, node, isStruck, isRaw) {
      if (isRaw) {
        const pieces = text.split("\n");
        for (let i = 0; i < pieces.length; i++) {
          if (i > 0) this.breakLine();
          if (pieces[i]) this.piece(pieces[i], node, isStruck, true);
        }
        return;
      }
      const trimmed = text.trim();
      const { sink } = this;
      if (!trimmed) {
        if (text) sink.hasSpace = true;
        return;
      }
      if (/^\s/.test(text)) sink.hasSpace = true;
      this.piece(trimmed.replace(/\s+/g, " "), node, isStruck, false);
      if (/\s$/.test(text)) this.sink.hasSpace = true;
    }

    // A word of ours for something that is not text, kept apart from what is beside it.
    token(text, isStruck) {
      this.sink.hasSpace = true;
      this.piece(text, null, isStruck, false);
      this.sink.hasSpace = true;
    }

    piece(text, node, isStruck, isRaw) {
      const { sink } = this;
      let joint = "";
      if (sink.line !== null) joint = this.joint(sink, text, node, isRaw);
      if (joint === "\n") this.endLine(sink);
      if (sink.line === null) {
        this.startLine(sink);
        joint = "";
      }
      if (sink.isStruckOpen && !isStruck) {
        sink.line += "~~";
        sink.isStruckOpen = false;
      }
      sink.blockBreak = 0; // an item beside the one before goes on in its line, and so does what follows
      sink.line += joint;
      if (isStruck && !sink.isStruckOpen) {
        sink.line += "~~";
        sink.isStruckOpen = true;
      }
      sink.line += text;
      sink.tail = (sink.tail + joint + text.slice(-TAIL_CHARS)).slice(-TAIL_CHARS);
      sink.hasSpace = false;
      sink.edge = EDGE.none;
      sink.lastNode = node;
      this.chars += text.length + joint.length;
    }

    // What stands between the open line and the next piece of text.
    joint(sink, text, node, isRaw) {
      const space = sink.hasSpace ? " " : "";
      if (sink.newlines) return "\n";
      const isBroken = sink.blockBreak > 0;
      if (sink.edge === EDGE.item) {
        const fits = sink.prefixes.every((prefix) => prefix.isUsed) && sink.line.length < LONGEST_JOINED_LINE;
        const gap = fits && !isRaw ? this.gap(sink, text, node) : null;
        if (gap === null || gap === "\n") return isBroken || gap ? "\n" : " ";
        return gap || (isBroken ? " " : space);
      }
      if (isBroken) return "\n";
      if (isRaw || space || sink.edge === EDGE.none) return space;
      const before = sink.tail.at(-1);
      const after = text[0];
      if (/[\s([{\u2018\u201c/]/.test(before) || /[\s.,;:!?)\]}\u2019\u201d%/]/.test(after)) return "";
      if (sink.edge === EDGE.inline && !/[\p{L}\p{N}:;,%)]/u.test(before)) return "";
      const gap = this.gap(sink, text, node);
      if (gap === null) return sink.edge === EDGE.box ? " " : "";
      if (gap === "\n") return sink.edge === EDGE.box ? " " : "";
      return gap === " | " ? " " : gap;
    }

    // What the eye sees between the last character and the next one; null where that cannot be measured.
    gap(sink, text, node) {
      if (!node || !sink.lastNode) return null;
      const lastIndex = dom.data(sink.lastNode).trimEnd().length - 1;
      const nextIndex = dom.data(node).search(/\S/u);
      if (lastIndex < 0 || nextIndex < 0) return null;
      const last = characterBox(sink.lastNode, lastIndex);
      const next = characterBox(node, nextIndex);
      if (!last.height || !next.height) return null;
      const overlap = Math.min(last.bottom, next.bottom) - Math.max(last.top, next.top);
      const lower = Math.min(last.height, next.height);
      const higher = Math.max(last.height, next.height);
      if (overlap < 0.3 * lower) return "\n";
      const distance = Math.max(last.left, next.left) - Math.min(last.right, next.right);
      // Lines of some fonts are taller than those of others of the same size.
      if (distance > 1.8 * Math.max(fontSize(sink.lastNode), fontSize(node))) return " | ";
      if (distance > 0.25 * higher) return " ";
      return lower < 0.8 * higher ? besideInOtherSize(sink.tail, text, next.bottom < last.bottom - 0.15 * higher) : "";
    }

    // So that two prices struck one after the other are not one.
    endStruck() {
      const { sink } = this;
      if (sink.line !== null && sink.isStruckOpen) sink.line += "~~";
      sink.isStruckOpen = false;
    }

    startLine(sink) {
      let breaks = sink.blockBreak;
      if (sink.newlines) breaks = Math.max(breaks, sink.newlines);
      if (sink.lines.length && sink.lines.at(-1).text !== "") {
        for (let i = 1; i < Math.min(breaks, 2); i++) sink.lines.push({ lead: "", text: "" });
      }
      sink.blockBreak = sink.newlines = 0;
      sink.lead = leadOf(sink);
      sink.line = "";
      sink.tail = "";
      sink.isStruckOpen = false;
      sink.hasSpace = false;
      sink.edge = EDGE.none;
    }

    endLine(sink) {
      if (sink.line === null) return;
      if (sink.isStruckOpen) sink.line += "~~";
      sink.isStruckOpen = false;
      sink.lines.push({ lead: sink.lead, text: sink.line });
      this.chars += sink.lead.length + 1;
      sink.line = null;
      sink.lastNode = null;
    }

    wholeLine(text, lead = "") {
      const { sink } = this;
      this.endLine(sink);
      this.startLine(sink);
      sink.lead += lead;
      sink.line = text;
      this.chars += text.length;
      this.endLine(sink);
      sink.blockBreak = 1;
    }

    // Where the open line ends now, to see later what was added; null where the line is about to end.
    mark() {
      const { sink } = this;
      if (sink.line === null || sink.blockBreak || sink.newlines) return { sink, lines: sink.lines.length, at: 0, isNew: true };
      return { sink, lines: sink.lines.length, at: sink.line.length, isNew: false };
    }

    // Replaces what was added to the line since the mark by `change(before, added)`; not if it took several lines.
    rewrite(mark, change) {
      const { sink } = this;
      if (sink !== mark.sink || sink.line === null) return;
      const isSameLine = mark.isNew ? sink.lines.length <= mark.lines + 1 : sink.lines.length === mark.lines;
      if (!isSameLine || sink.line.length <= mark.at) return;
      const before = sink.line.slice(0, mark.at);
      sink.line = before + change(before.slice(-TAIL_CHARS), sink.line.slice(mark.at));
      sink.tail = sink.line.slice(-TAIL_CHARS);
    }
  }

  // "19" and a small raised "99" are not 1999.
  function besideInOtherSize(before, after, isRaised) {
    if (!/\p{N}$/u.test(before) || !/^\p{N}/u.test(after)) return "";
    if (/\p{Sc}\s?[\d,.\s]*\d$/u.test(before) && /^\d\d(?!\d)/.test(after)) return ".";
    return isRaised ? "^" : " ";
  }

  function leadOf(sink) {
    let lead = "";
    const { prefixes } = sink;
    for (let i = 0; i < prefixes.length; i++) {
      const prefix = prefixes[i];
      if (i < DEEPEST_INDENT) lead += prefix.isUsed ? prefix.rest : prefix.first;
      prefix.isUsed = true;
    }
    return lead;
  }

  return { Writer, EDGE };
}

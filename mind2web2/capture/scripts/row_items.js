// Rows of flex and grid items that stand below each other as in a table: where some of their items are empty, each
// row has to keep its empty ones, or what is in the third column would read like what is in the second.
function (parts) {
  const { dom } = parts;
  const MAX_COLUMNS = 30;
  const SMALLEST_WIDTH_PX = 8;
  const ALIGNED_PX = 8;
  const MAX_NODES_IN_EMPTY = 6;
  const LONGEST_ITEM_CHARS = 200;
  const MAX_ITEM_LINES = 3;
  // Flows on their own, or stands for itself: nothing that an empty item is made of.
  const FILLED = /^(img|svg|video|canvas|iframe|object|embed|input|select|textarea|button|progress|meter|hr|br|slot)$|-/;
  const known = new Map(); // parent of rows to number of items to those rows that keep them

  function elementsIn(element) {
    const found = [];
    for (let child = dom.first(element); child; child = dom.next(child)) {
      if (dom.type(child) === 1) found.push(child);
      else if (dom.type(child) === 3 && /\S/.test(dom.data(child))) return [];
    }
    return found;
  }

  function isEmpty(item, left = { nodes: MAX_NODES_IN_EMPTY }) {
    if (FILLED.test(dom.name(item)) || dom.openRoot(item) || dom.hasAttribute(item, "aria-label") || left.nodes-- <= 0) return false;
    for (let child = dom.first(item); child; child = dom.next(child)) {
      if (dom.type(child) === 1 ? !isEmpty(child, left) : dom.type(child) === 3 && /\S/.test(dom.data(child))) return false;
    }
    return true;
  }

  // The boxes of the items that take a place; null where some are placed otherwise.
  function boxesOf(items) {
    const boxes = [];
    for (const item of items) {
      const { display, position } = getComputedStyle(item);
      if (display === "none") continue;
      if (display === "contents" || position === "absolute" || position === "fixed") return null;
      boxes.push(dom.box(item));
    }
    return boxes;
  }

  const isSideBySide = (boxes) =>
    boxes.every((box, i) => box.width >= SMALLEST_WIDTH_PX && (i === 0 || box.left >= boxes[i - 1].right - ALIGNED_PX));

  const areAligned = (boxes, others) =>
    boxes.length === others.length && boxes.every((box, i) => Math.abs(box.left - others[i].left) <= ALIGNED_PX);

  const isTable = (rows) => rows.length > 1 && rows[0].length > 1 && rows.every((row) => isSideBySide(row) && areAligned(row, rows[0]));

  function findRows(parent, count) {
    const rows = [];
    let hasEmpty = false;
    for (let child = dom.first(parent); child; child = dom.next(child)) {
      const items = dom.type(child) === 1 ? elementsIn(child) : [];
      if (items.length !== count) continue;
      rows.push({ child, items });
      hasEmpty ||= items.some((item) => isEmpty(item));
    }
    if (rows.length < 2 || !hasEmpty) return new Set();
    const shown = rows
      .filter(({ child }) => /(flex|grid)$/.test(getComputedStyle(child).display))
      .map(({ child, items }) => ({ child, boxes: boxesOf(items) }));
    if (shown.some(({ boxes }) => boxes === null) || !isTable(shown.map(({ boxes }) => boxes))) return new Set();
    return new Set(shown.map(({ child }) => child));
  }

  // How many items a row has in a grid whose rows have no elements of their own.
  function columnsOfGrid(items, style) {
    if (items.length < 4 || !items.some((item) => isEmpty(item))) return 0;
    const boxes = boxesOf(items);
    if (!boxes || style.direction === "rtl") return 0;
    const columns = boxes.findIndex((box, i) => i > 0 && box.left <= boxes[i - 1].left);
    if (columns < 2 || columns > MAX_COLUMNS || boxes.length % columns) return 0;
    const rows = Array.from({ length: boxes.length / columns }, (_, r) => boxes.slice(r * columns, (r + 1) * columns));
    return isTable(rows) ? columns : 0;
  }

  // The number of items that make up a row of such a table, whose row, or all of which, the element is; or 0.
  function columnsOf(element, style) {
    const parent = dom.parent(element);
    const items = elementsIn(element);
    if (items.length < 2 || !parent) return 0;
    if (items.length <= MAX_COLUMNS) {
      if (!known.has(parent)) known.set(parent, new Map());
      const byCount = known.get(parent);
      if (!byCount.has(items.length)) byCount.set(items.length, findRows(parent, items.length));
      if (byCount.get(items.length).has(element)) return items.length;
    }
    return style.display.endsWith("grid") ? columnsOfGrid(items, style) : 0;
  }

  function write(writer, cells, columns) {
    for (let at = 0; at < cells.length; at += columns) writeRow(writer, cells.slice(at, at + columns));
  }

  function writeRow(writer, cells) {
    const texts = cells.map(({ lines }) => lines.map(({ lead, text }) => (lead + text).trim()).filter(Boolean));
    if (!texts.some((lines) => lines.length)) return;
    const isShort = texts.every((lines) => lines.length <= MAX_ITEM_LINES && lines.every((line) => line.length < LONGEST_ITEM_CHARS));
    if (isShort && !cells.some(({ hasTable }) => hasTable)) writer.wholeLine(texts.map((lines) => lines.join(" / ")).join(" | ").trim());
    else for (const { lines } of cells) for (const { lead, text } of lines) writer.wholeLine(text, lead);
    writer.sink.hasTable ||= cells.some(({ hasTable }) => hasTable);
    writer.sink.hasHeading ||= cells.some(({ hasHeading }) => hasHeading);
  }

  return { columnsOf, write };
}

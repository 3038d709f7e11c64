// Tables as Markdown, each cell under its column's header; tables that only arrange the page as blocks.
function (parts) {
  const MAX_COLUMNS = 40;
  const MAX_GRID_CELLS = 400_000;
  const LONGEST_CELL_CHARS = 2000;
  const MAX_CELL_LINES = 25;
  const SPLIT_PX = 40;

  const SECTION = { thead: 0, tbody: 1, tfoot: 2 };

  class Table {
    constructor({ isLayout, isDeclared, box }) {
      this.isLayout = isLayout;
      this.box = box;
      this.isDeclared = isDeclared; // its markup says that it holds data
      this.rows = [];
      this.row = null;
    }

    openRow(section) {
      this.row = { cells: [], section: SECTION[section] ?? 1 };
      this.rows.push(this.row);
    }

    add(cell) {
      if (!this.row) this.openRow("tbody");
      this.row.cells.push(cell);
    }
  }

  const inlineText = (cell) => {
    const texts = [];
    for (const { lead, text } of cell.lines) {
      const marker = /(\d+|[a-z]+)\. $/i.exec(lead);
      if (text) texts.push((marker ? marker[0] : "") + text);
    }
    return texts.join(" / ").replaceAll("|", "\\|").trim();
  };

  const isHeavy = (cell) =>
    cell.hasTable || cell.lines.length > MAX_CELL_LINES || cell.lines.reduce((sum, line) => sum + line.text.length, 0) > LONGEST_CELL_CHARS;

  // Every cell at its row and column, spanning ones repeated; one that spans the whole row stands once.
  function grid(rows) {
    const taken = [];
    let lastColumn = 0;
    let cells = 0;
    const groupEnds = endOfGroups(rows);
    rows.forEach((row, r) => {
      taken[r] ??= [];
      let column = 0;
      for (const cell of row.cells) {
        while (taken[r][column]) column++;
        lastColumn = Math.max(lastColumn, column);
        const height = Math.min(cell.rowSpan || Infinity, groupEnds[r] - r);
        for (let dr = 0; dr < height; dr++) {
          taken[r + dr] ??= [];
          for (let dc = 0; dc < cell.columnSpan && cells < MAX_GRID_CELLS; dc++, cells++) {
            taken[r + dr][column + dc] ??= cell;
          }
        }
        column += cell.columnSpan;
      }
    });
    // A column that no row divides from the one before is only a number in a `colspan`.
    const columns = Array.from({ length: lastColumn + 1 }, (_, c) => c).filter(
      (c) => c === 0 || taken.some((row) => (row[c] ?? null) !== (row[c - 1] ?? null)),
    );
    return rows.map((_, r) => columns.map((c) => taken[r][c] ?? null));
  }

  function endOfGroups(rows) {
    const ends = [];
    let end = rows.length;
    for (let r = rows.length - 1; r >= 0; r--) {
      if (r + 1 < rows.length && rows[r + 1].section !== rows[r].section) end = r + 1;
      ends[r] = end;
    }
    return ends;
  }

  function headerRows(rows) {
    let count = 0;
    while (count < rows.length && count < 4 && rows[count].cells.length && isHeaderRow(rows[count])) count++;
    return count === rows.length && count > 1 ? 1 : count;
  }

  const isHeaderRow = (row) => row.section === 0 || row.cells.every((cell) => cell.isHeader || (!cell.lines.length && row.cells.some((other) => other.isHeader)));

  const isWholeRow = (row) => row.length > 1 && row[0] !== null && row.every((cell) => cell === row[0]);

  function headers(rows, width) {
    return Array.from({ length: width }, (_, column) => {
      const texts = [];
      let last = null;
      for (const row of rows) {
        const cell = row[column];
        const text = cell && cell !== last ? inlineText(cell) : "";
        if (text && texts.at(-1) !== text) texts.push(text);
        last = cell;
      }
      return texts.join(" / ");
    });
  }

  const markdownRow = (texts) => `| ${texts.join(" | ")} |`;

  // Each column's header: the table's own, or where that shows nothing, the one that stands over it as a table of its
  // own, as is done to keep it in sight while the rows scroll.
  function columnHeaders(cells, count, split) {
    const { length: width } = cells[0];
    const own = headers(cells.slice(0, count), width);
    return split && !own.some(Boolean) ? split.texts.slice(0, width) : own;
  }

  let splitHeader = null; // of the table before, if it was nothing but a header

  // The header right above a table, as wide as the table but for what keeps room for a scroll bar.
  function splitHeaderOf(table, cells) {
    if (!splitHeader) return null;
    const { box, texts } = splitHeader;
    const isAbove = Math.abs(box.left - table.box.left) <= SPLIT_PX && table.box.top <= box.bottom + SPLIT_PX && table.box.bottom > box.bottom;
    return isAbove && cells[0].length > 1 && !texts.slice(cells[0].length).some(Boolean) && texts.length >= cells[0].length ? splitHeader : null;
  }

  function writeMarkdown(writer, rows, count, split) {
    const cells = grid(rows);
    const top = columnHeaders(cells, count, split);
    writer.wholeLine(markdownRow(top));
    writer.wholeLine(markdownRow(top.map(() => "---")));
    for (const row of cells.slice(count)) {
      if (writer.isFull) break;
      const isWhole = isWholeRow(row);
      const texts = row.map((cell, i) => (cell && !(isWhole && i) ? inlineText(cell) : ""));
      if (texts.some(Boolean)) writer.wholeLine(markdownRow(texts));
    }
  }

  // One item a row, each cell after its column's header: for cells that a line cannot hold.
  function writeRecords(writer, rows, count, split) {
    const cells = grid(rows);
    const top = columnHeaders(cells, count, split);
    for (const row of cells.slice(count)) {
      if (writer.isFull) break;
      writer.openPrefix("- ", "  ");
      row.forEach((cell, column) => {
        if (!cell || !cell.lines.length || cell === row[column - 1]) return;
        const header = top[column] ? `${top[column]}: ` : "";
        if (!cell.hasTable && cell.lines.length === 1) {
          writer.wholeLine(header + cell.lines[0].text);
          return;
        }
        if (header) writer.wholeLine(header.trim());
        writeLines(writer, cell.lines);
      });
      writer.closePrefix();
    }
  }

  function writeLines(writer, lines) {
    for (const { lead, text } of lines) writer.wholeLine(text, lead);
  }

  function writeBlocks(writer, rows) {
    for (const row of rows) {
      const cells = row.cells.filter((cell) => cell.lines.length);
      const isShort = cells.every((cell) => cell.lines.length === 1 && cell.lines[0].text.length < 200 && !cell.hasTable);
      if (isShort && cells.length) writer.wholeLine(cells.map((cell) => cell.lines[0].lead + cell.lines[0].text).join(" | "));
      else for (const cell of cells) writeLines(writer, cell.lines);
    }
  }

  function holdsData(table, rows, split) {
    if (table.isLayout) return false;
    if (split) return true;
    const isWide = rows.some((row) => row.cells.length > 1);
    if (table.isDeclared || rows.some((row) => row.cells.some((cell) => cell.isHeader))) return isWide || rows.length > 1;
    if (!isWide || rows.length < 2) return false;
    return !rows.some((row) => row.cells.some((cell) => isHeavy(cell) || cell.hasHeading));
  }

  function write(writer, table, loose) {
    writeLines(writer, loose.lines);
    const rows = table.rows.filter((row) => row.cells.length).sort((a, b) => a.section - b.section);
    if (!rows.some((row) => row.cells.some((cell) => cell.lines.length))) return;
    const split = splitHeaderOf(table, grid(rows));
    splitHeader = null;
    if (!holdsData(table, rows, split)) {
      writeBlocks(writer, rows);
      writer.sink.hasTable ||= rows.some((row) => row.cells.some((cell) => cell.hasTable));
      return;
    }
    const count = headerRows(rows);
    const widest = Math.max(...rows.map((row) => row.cells.length));
    if (widest > MAX_COLUMNS || rows.some((row) => row.cells.some(isHeavy))) writeRecords(writer, rows, count, split);
    else writeMarkdown(writer, rows, count, split);
    if (rows.every(isHeaderRow)) {
      const cells = grid(rows);
      splitHeader = { box: table.box, texts: headers(cells, cells[0].length) };
    }
    writer.sink.hasTable = true;
  }

  return { Table, write };
}

// Which elements make up a table, be it by their names, their roles or their style, and what is collected of them.
function (parts) {
  const { dom, tables } = parts;
  const TABLE_ROLES = new Set(["table", "grid", "treegrid"]);
  const CELL_ROLES = new Set(["cell", "gridcell", "columnheader", "rowheader"]);

  const isTable = (name, role, display) =>
    (name === "table" && !CELL_ROLES.has(role)) || TABLE_ROLES.has(role) || ((display === "table" || display === "inline-table") && name !== "table");

  function enterTable(writer, element, name, role, scope, leaves) {
    const isLayout = role === "presentation" || role === "none";
    const isDeclared = TABLE_ROLES.has(role) || (name === "table" && isDeclaredTable(element));
    const table = new tables.Table({ isLayout, isDeclared, box: dom.box(element) });
    scope.table = table;
    scope.list = null;
    scope.rowGroup = null;
    writer.openSink();
    leaves.push(() => {
      const loose = writer.closeSink();
      writer.breakBlock(isLayout ? 1 : 2);
      tables.write(writer, table, loose);
      writer.breakBlock(isLayout ? 1 : 2);
    });
  }

  function isDeclaredTable(element) {
    for (let child = dom.first(element); child; child = dom.next(child)) {
      if (dom.type(child) === 1 && /^(caption|thead)$/.test(dom.name(child)) && getComputedStyle(child).display !== "none") return true;
    }
    return dom.hasAttribute(element, "summary");
  }

  function enterTablePart(writer, element, name, role, scope, leaves) {
    const { table, display } = scope;
    if (name === "thead" || name === "tfoot" || name === "tbody") scope.rowGroup = name;
    else if (name === "tr" || role === "row" || display === "table-row") {
      table.openRow(scope.rowGroup ?? "tbody");
      leaves.push(() => {
        table.row = null;
      });
    } else if (name === "td" || name === "th" || CELL_ROLES.has(role) || display === "table-cell") enterCell(writer, element, name, role, scope, leaves);
  }

  function enterCell(writer, element, name, role, scope, leaves) {
    const { table } = scope;
    scope.table = null;
    scope.list = null;
    const span = (attribute, most) => {
      const value = Number.parseInt(dom.attribute(element, attribute) ?? dom.attribute(element, `aria-${attribute}`) ?? "1", 10);
      return Number.isNaN(value) || value < 0 ? 1 : Math.min(value, most);
    };
    const isHeader = role === null ? name === "th" : role === "columnheader" || role === "rowheader" || name === "th";
    writer.openSink();
    leaves.push(() => {
      const { lines, hasTable, hasHeading } = writer.closeSink();
      table.add({ lines, hasTable, hasHeading, isHeader, columnSpan: span("colspan", 1000) || 1, rowSpan: span("rowspan", 65534) });
    });
  }

  return { isTable, enterTable, enterTablePart };
}

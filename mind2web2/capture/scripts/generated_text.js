// Text that comes from style sheets and list counters instead of the document.
function (parts) {
  const { dom } = parts;
  const STRING = /"((?:[^"\\]|\\[^])*)"/y;

  const unescape = (text) =>
    text.replace(/\\([0-9a-f]{1,6}) ?|\\([^])/gi, (_, code, plain) => (code ? String.fromCodePoint(parseInt(code, 16)) : plain));

  // The text of a pseudo-element's `content`, with pictures by their alternative text.
  function contentText(content, element, side) {
    let text = "";
    let isAlternative = false;
    for (let at = 0; at < content.length; ) {
      STRING.lastIndex = at;
      const string = STRING.exec(content);
      if (string) {
        const value = unescape(string[1]);
        if (!isAlternative) text += value;
        else if (value) return `[image: ${dom.oneLine(value)}]`;
        at = STRING.lastIndex;
        continue;
      }
      const rest = content.slice(at);
      const word = /^([a-z-]+)(\((?:[^()"]|"(?:[^"\\]|\\[^])*"|\([^)]*\))*\))?/i.exec(rest);
      if (!word) {
        if (rest[0] === "/") isAlternative = true;
        at++;
        continue;
      }
      if (word[1] === "open-quote") text += "\u201c";
      else if (word[1] === "close-quote") text += "\u201d";
      else if (word[1] === "counter" || word[1] === "counters") text += parts.counters.text(element, side, word[0]);
      else if (word[1] === "attr") text += dom.attribute(element, word[2].slice(1, -1).trim()) ?? "";
      at += word[0].length;
    }
    return dom.clean(text);
  }

  // What `::before` or `::after` shows, as { text, display, isApart }; null for nothing.
  function pseudo(element, side) {
    const style = getComputedStyle(element, side);
    const { content } = style;
    if (content === "none" || content === "normal" || content === '""' || content === "") return null;
    if (style.display === "none" || style.visibility !== "visible" || parseFloat(style.opacity) < 0.02) return null;
    if (parseFloat(style.fontSize) < 2 || dom.isClear(style.webkitTextFillColor)) return null;
    const text = contentText(content, element, side);
    if (!text.trim()) return text ? { text, display: "inline", isApart: false } : null;
    const isApart =
      style.display !== "inline" || ["marginLeft", "marginRight", "paddingLeft", "paddingRight"].some((side) => parseFloat(style[side]) > 3);
    return { text, display: style.display, isApart };
  }

  function letters(number, first, size) {
    let text = "";
    for (let rest = number; rest > 0; rest = Math.floor((rest - 1) / size)) {
      text = String.fromCodePoint(first.codePointAt(0) + ((rest - 1) % size)) + text;
    }
    return text;
  }

  const ROMAN = [[1000, "m"], [900, "cm"], [500, "d"], [400, "cd"], [100, "c"], [90, "xc"], [50, "l"], [40, "xl"], [10, "x"],
    [9, "ix"], [5, "v"], [4, "iv"], [1, "i"]];
  function roman(number) {
    let text = "";
    let rest = number;
    for (const [value, sign] of ROMAN) for (; rest >= value; rest -= value) text += sign;
    return text;
  }

  function number(value, type) {
    if (/^(lower|upper)-(alpha|latin)$/.test(type) && value > 0) return letters(value, type[0] === "l" ? "a" : "A", 26);
    if (type === "lower-roman" && value > 0 && value < 4000) return roman(value);
    if (type === "upper-roman" && value > 0 && value < 4000) return roman(value).toUpperCase();
    if (type === "decimal-leading-zero") return String(value).padStart(2, "0");
    return String(value);
  }

  // The marker of a list's item, with a space after it.
  function marker(style, value) {
    const type = style.listStyleType;
    if (type.startsWith('"')) {
      const own = dom.clean(unescape(type.slice(1, -1))).trim();
      return own ? `${own} ` : "- ";
    }
    return value === null || /^(none|disc|circle|square|disclosure)/.test(type) ? "- " : `${number(value, type)}. `;
  }

  return { pseudo, marker, number };
}

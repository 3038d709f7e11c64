// Renders the tree of an answer's markdown; only elements of a fixed list, so that no HTML of an answer counts.

import { h } from "preact";
import { html, OutsideLink } from "viewer/parts";

const TAGS = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code hr br em strong s table thead tbody tr th td".split(" "),
);

/** @param {{tree: any[]}} props */
export function Markdown({ tree }) {
  return html`<div class="markdown">${tree.map(element)}</div>`;
}

/** @param {any} node @returns {any} */
function element(node) {
  if (!Array.isArray(node)) return String(node);
  const [tag, attributes, ...children] = node;
  const inside = children.map(element);
  if (tag === "a") return html`<${OutsideLink} href=${String(attributes.href || "")}>${inside}<//>`;
  if (tag === "table") return h("div", { class: "table-wrap", tabIndex: 0 }, h("table", {}, inside));
  if (tag === "ol") return h("ol", { start: Number(attributes.start) || 1 }, inside);
  // The headings of an answer stand below those of the page.
  if (/^h[1-5]$/.test(tag)) return h(`h${Number(tag[1]) + 1}`, {}, inside);
  return h(TAGS.has(tag) ? tag : "span", {}, inside);
}

// Renders the tree of an answer's markdown; only elements of a fixed list, so that no HTML of an answer counts.

import { h } from "preact";
import { html, OutsideLink } from "viewer/parts";

const TAGS = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code hr br em strong s table thead tbody tr th td".split(" "),
);

/**
 * @typedef {(attributes: any, inside: any) => any} Mark what a marked passage becomes
 * @param {{tree: any[], mark?: Mark}} props
 */
export function Markdown({ tree, mark }) {
  return html`<div class="markdown">${tree.map((node) => html`<div dir="auto">${element(node, mark)}</div>`)}</div>`;
}

/** @param {any} node @param {Mark} [mark] @returns {any} */
function element(node, mark) {
  if (!Array.isArray(node)) return String(node);
  const [tag, attributes, ...children] = node;
  const inside = children.map((child) => element(child, mark));
  if (tag === "mark" && mark) return mark(attributes, inside);
  if (tag === "a") return html`<${OutsideLink} href=${String(attributes.href || "")}>${inside}<//>`;
  if (tag === "table") return h("div", { class: "table-wrap", tabIndex: 0 }, h("table", {}, inside));
  if (tag === "ol") return h("ol", { start: Number(attributes.start) || 1 }, inside);
  // The headings of an answer stand below those of the page.
  if (/^h[1-5]$/.test(tag)) return h(`h${Number(tag[1]) + 1}`, {}, inside);
  return h(TAGS.has(tag) ? tag : "span", {}, inside);
}

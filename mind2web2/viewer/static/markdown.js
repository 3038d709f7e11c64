// Renders the tree of an answer's markdown; only elements of a fixed list, so that no HTML of an answer counts.

import { h } from "preact";
import { html, OutsideLink } from "viewer/parts";

const TAGS = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code hr br em strong s table thead tbody tr th td".split(" "),
);
const HEADING = /^h[1-6]$/;

/**
 * @typedef {(attributes: any, inside: any) => any} Mark what a marked passage becomes
 * @param {{tree: any[], mark?: Mark}} props
 */
export function Markdown({ tree, mark }) {
  const levels = tree.flatMap(([tag]) => (HEADING.test(tag) ? [Number(tag[1])] : []));
  // The highest headings of an answer stand right below the heading of the page.
  const lower = 2 - Math.min(6, ...levels);
  return html`<div class="markdown">${tree.map((node) => html`<div dir="auto">${element(node, lower, mark)}</div>`)}</div>`;
}

/** @param {any} node @param {number} lower levels of headings @param {Mark} [mark] @returns {any} */
function element(node, lower, mark) {
  if (!Array.isArray(node)) return String(node);
  const [tag, attributes, ...children] = node;
  const inside = children.map((child) => element(child, lower, mark));
  if (tag === "mark" && mark) return mark(attributes, inside);
  if (tag === "a") return html`<${OutsideLink} href=${String(attributes.href || "")}>${inside}<//>`;
  if (tag === "table") return h("div", { class: "table-wrap", tabIndex: 0 }, h("table", {}, inside));
  if (tag === "ol") return h("ol", { start: Number(attributes.start) || 1 }, inside);
  if (HEADING.test(tag)) return h(`h${Math.min(6, Number(tag[1]) + lower)}`, {}, inside);
  return h(TAGS.has(tag) ? tag : "span", {}, inside);
}

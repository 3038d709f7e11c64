// Which answers the overview shows: all, or those with a kind of score or a mark.

import { html, address, MARKS } from "viewer/parts";

const FILTERS = { failed: "below 1", zero: "score 0", unscored: "no score", changed: "score changed", ...MARKS };

/** @param {{answers: any[], chosen: string, options: Record<string, string>}} props */
export function Filters({ answers, chosen, options }) {
  const counts = Object.keys(FILTERS).map((name) => [name, answers.filter((row) => isChosen(row, name)).length]);
  return html`<div class="filters" role="group" aria-label="Show only answers with">
    <a class=${`chip ${chosen ? "" : "on"}`} href=${address("overview", [], { ...options, filter: "" })}>all <span class="count">${answers.length}</span></a>
    ${counts
      .filter(([name, count]) => count || name === chosen)
      .map(
        ([name, count]) =>
          html`<a
            class=${`chip ${chosen === name ? "on" : ""}`}
            aria-current=${chosen === name ? "true" : undefined}
            href=${address("overview", [], { ...options, filter: chosen === name ? "" : String(name) })}
            >${FILTERS[/** @type {keyof FILTERS} */ (name)]} <span class="count">${count}</span></a
          >`,
      )}
  </div>`;
}

/** @param {any} row @param {string} filter */
export function isChosen(row, filter) {
  if (!filter) return true;
  if (filter === "failed") return row.score !== null && row.score < 1;
  if (filter === "zero") return row.score === 0;
  if (filter === "unscored") return row.score === null;
  if (filter === "changed") return row.before !== undefined && row.before !== null && row.before !== row.score;
  return (row.marks || []).includes(filter);
}

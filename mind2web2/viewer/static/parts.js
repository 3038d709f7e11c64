// Small parts that several views share.

import { h } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import htm from "htm";
import { load } from "viewer/source";

export const html = htm.bind(h);

/**
 * Load data for a view; return the data, or what is shown in its place.
 * @param {string} kind
 * @param {Record<string, string>} place
 * @param {number} [version] another number loads again
 * @returns {{data: any, error: string | null}}
 */
export function useData(kind, place, version = 0) {
  const [state, setState] = useState(/** @type {{data: any, error: string | null, name: string}} */ ({ data: null, error: null, name: "" }));
  const name = JSON.stringify([kind, place, version]);
  useEffect(() => {
    let isWanted = true;
    load(kind, place).then(
      (data) => isWanted && setState({ data, error: null, name }),
      (error) => isWanted && setState({ data: null, error: String(error.message || error), name }),
    );
    return () => {
      isWanted = false;
    };
  }, [name]);
  // What belongs to another place is not shown while the new one loads.
  return state.name === name ? state : { data: null, error: null };
}

/** @param {{error: string | null}} props */
export function Waiting({ error }) {
  if (error) return html`<p class="notice error" role="alert">${error}</p>`;
  return html`<p class="notice" role="status">Loading …</p>`;
}

/**
 * A score in the colour of its height.
 * @param {{score: number | null, title?: string}} props
 */
export function Score({ score, title }) {
  if (score === null || score === undefined) return html`<span class="score none" title=${title}>no score</span>`;
  return html`<span class=${`score ${scoreClass(score)}`} title=${title}>${number(score)}</span>`;
}

/**
 * The step of a score: 0, below a third, below two thirds, below 1, and 1.
 * @param {number | null} score
 */
export function scoreClass(score) {
  if (score === null || score === undefined) return "none";
  if (score >= 1 - 1e-6) return "full";
  if (score <= 0) return "zero";
  if (score < 1 / 3) return "low";
  return score < 2 / 3 ? "middle" : "high";
}

/** @param {{status: string}} props */
export function Status({ status }) {
  return html`<span class=${`status ${status}`}><span aria-hidden="true">${SIGNS[status] || "?"}</span> ${status === "initialized" ? "never judged" : status}</span>`;
}

/** @type {Record<string, string>} */
const SIGNS = { passed: "✓", failed: "✗", partial: "◐", skipped: "⤼", initialized: "…" };

/** @param {number | null | undefined} value @param {number} digits */
export function number(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  return value === 0 || value === 1 ? String(value) : value.toFixed(digits);
}

// The least share that is not shown as 0%, as in the terminal.
const LEAST_SHARE = 0.005;

/** @param {number | null | undefined} value */
export function percent(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < LEAST_SHARE) return "under 1%";
  if (value < 1 && value > 1 - LEAST_SHARE) return "over 99%";
  return `${(value * 100).toFixed(0)}%`;
}

/**
 * A moment of a record, "2026-11-21T08:12:31+00:00", as people read it.
 * @param {string | null | undefined} value
 */
export function moment(value) {
  return value?.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:[\d.]+)?(Z|\+00:00)$/, "$1 $2 UTC");
}

/** @param {number} count @param {string} noun */
export function counted(count, noun) {
  return `${count} ${count === 1 ? noun : `${noun.replace(/leaf$/, "leave")}s`}`;
}

/**
 * A link to a page of the web, which may be hostile: nothing of this page goes with it.
 * @param {{href: string, children?: any}} props
 */
export function OutsideLink({ href, children }) {
  if (!/^https?:\/\//i.test(href)) return html`<span class="address">${children || href}</span>`;
  return html`<a class="address" href=${href} target="_blank" rel="noopener noreferrer nofollow">${children || href}</a>`;
}

/**
 * The address of a view.
 * @param {string} view
 * @param {string[]} steps
 * @param {Record<string, string | undefined>} options
 */
export function address(view, steps = [], options = {}) {
  const path = [view, ...steps].map(encodeURIComponent).join("/");
  const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

// Keys that change something, or go on from what was changed.
const ONCE = new Set(["y", "n", "u", "z", "Enter"]);

/**
 * Call a handler for keys that are pressed outside of fields.
 * @param {Record<string, () => void>} handlers
 */
export function useKeys(handlers) {
  useLayoutEffect(() => {
    /** @param {KeyboardEvent} event */
    const pressed = (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select")) return;
      // On a link that leads elsewhere or a button, Enter has its own meaning.
      const control = target.closest("a, button, summary");
      if (event.key === "Enter" && control && control.getAttribute("href") !== location.hash) return;
      const handler = handlers[event.key];
      if (!handler) return;
      // A key that is held counts once.
      if (event.repeat && ONCE.has(event.key)) return event.preventDefault();
      event.preventDefault();
      handler();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });
}

/** @param {{keys: [string, string][]}} props */
export function KeyHelp({ keys }) {
  return html`<p class="keys">${keys.map(([key, meaning]) => html`<span><kbd>${key}</kbd> ${meaning}</span> `)}</p>`;
}

/** The names of the marks on answers, which are the filters of the overview. */
export const MARKS = {
  page_not_had: "unavailable page",
  suspect_page: "suspect page",
  split_votes: "split votes",
  quote_missing: "quotation not found",
  flagged: "text written for the judge",
  declined: "judge declined",
  error: "error in a check",
  in_doubt: "in doubt",
  no_tree: "no rubric tree",
};

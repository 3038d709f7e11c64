// Checked reports: each statement marked by its verdict, and beside it what the cited pages say.

import { useEffect } from "preact/hooks";
import { html, address, KeyHelp, OutsideLink, useData, useKeys, Waiting } from "viewer/parts";
import { CheckedPage, Quote } from "viewer/evidence";
import { Markdown } from "viewer/markdown";

/** The verdicts, worst first, with their signs. @type {Record<string, string>} */
const SIGNS = {
  contradicted: "✗",
  qualified: "±",
  "not judged": "?",
  "not there": "∅",
  "page unavailable": "⚠",
  "no source given": "○",
  supported: "✓",
  "needs no source": "·",
};
const VERDICTS = Object.keys(SIGNS);

/** @param {any} statement */
const verdictOf = (statement) => (statement.checkable ? statement.verdict : "needs no source");
/** The verdicts that the summary counts. @param {any} statement @returns {string[]} */
const verdictsOf = (statement) => (statement.checkable ? statement.claims.map((/** @type {any} */ claim) => claim.verdict) : ["needs no source"]);
/** The next of some numbers; after the last one, the first. @param {number[]} numbers @param {number} current */
const after = (numbers, current) => numbers.find((number) => number > current) ?? numbers[0];
/** @param {string} verdict */
const classOf = (verdict) => `statement ${verdict.replaceAll(" ", "-")}`;

/** @param {{steps: string[], options: Record<string, string>}} props */
export function Checked({ steps, options }) {
  const { data, error } = useData("checked", {});
  const place = Number(steps[0]) || 0;
  const report = data?.[place];
  const statements = report?.statements || [];
  const current = statements[Number(steps[1])] ? Number(steps[1]) : worst(statements);
  /** @param {number} number */
  const open = (number) => {
    if (statements[number]) location.replace(at(place, number));
    // The address stays if the reader has only scrolled away.
    if (number === current) reveal(number);
  };
  /** @type {Record<string, () => void>} */
  const go = {
    k: () => open(current - 1),
    j: () => open(current + 1),
    n: () => open(after(statements.flatMap((/** @type {any} */ each, /** @type {number} */ number) => (isFault(each) ? [number] : [])), current)),
  };
  useKeys({
    ...go,
    Enter: () => document.getElementById("statement")?.focus(),
    Escape: () => signOf(current)?.focus(),
  });
  useEffect(() => {
    // At first the sentence at the top stays in sight; beside it is the worst statement.
    if (steps[1] !== undefined) reveal(current);
  }, [data, place, steps[1]]);
  if (!data) return html`<${Waiting} error=${error} />`;
  if (!report) return html`<p class="notice error">This file has no such report. <a href="#/checked">The first one</a></p>`;
  /** @param {any} attributes @param {any} inside */
  const mark = ({ statement, first }, inside) => {
    const verdict = verdictOf(statements[statement]);
    return html`<span
      class=${`${classOf(verdict)} ${statement === current ? "current" : ""}`}
      onClick=${() => open(statement)}
      >${
        first &&
        html`<a id=${`statement-${statement}`} href=${at(place, statement)} aria-current=${statement === current ? "true" : undefined} aria-label=${`statement ${statement + 1}: ${verdict}`} title=${verdict}
          >${SIGNS[verdict]}</a
        > `
      }${inside}</span
    >`;
  };
  return html`
    ${
      data.length > 1 &&
      html`<nav class="filters" aria-label="Reports">
        ${data.map(
          (/** @type {any} */ each, /** @type {number} */ number) =>
            html`<a class=${`chip ${number === place ? "on" : ""}`} aria-current=${number === place ? "page" : undefined} href=${address("checked", [String(number)])}
              >${each.agent}</a
            >`,
        )}
      </nav>`
    }
    <p class="path"><bdi>${report.agent}</bdi></p>
    <h1>${report.summary}</h1>
    <${Counts} ...${{ statements, current, open }} />
    <${KeyHelp} keys=${[["Enter", "to what the pages say"], ["Esc", "back to the report"]]} />
    <div class="columns checked">
      <section aria-label="Report"><${Markdown} tree=${report.markdown} mark=${mark} /></section>
      <section id="statement" aria-label="Statement" class="beside" tabindex="-1">
        ${
          statements[current] &&
          html`<p class="filters steps">
              ${[["k", "previous"], ["j", "next"], ["n", "next that does not hold"]].map(
                ([key, meaning]) => html`<button onClick=${go[key]}><kbd class="keys">${key}</kbd> ${meaning}</button>`,
              )}
              <a href=${at(place, current)} onClick=${() => reveal(current)}>${current + 1} of ${statements.length}</a>
            </p>
            <${Statement} key=${current} ...${{ report, place, number: current, leaf: options.leaf }} />`
        }
      </section>
    </div>
    <${Figures} report=${report} />
  `;
}

/** @param {number} place @param {number} number @param {string} [leaf] */
function at(place, number, leaf) {
  return address("checked", [String(place), String(number)], { leaf });
}

/** The sign before a statement in the report. @param {number} number */
const signOf = (number) => document.getElementById(`statement-${number}`);
/** @param {number} number */
const reveal = (number) => signOf(number)?.scrollIntoView({ block: "nearest", behavior: "instant" });

/** @param {any} statement */
function isFault(statement) {
  return statement.checkable && statement.verdict !== "supported";
}

/** The number of the statement with the worst verdict. @param {any[]} statements */
function worst(statements) {
  const ranks = statements.map((each) => VERDICTS.indexOf(verdictOf(each)));
  return ranks.indexOf(Math.min(...ranks));
}

/** Buttons that go from one statement with a verdict to the next. @param {any} props */
function Counts({ statements, current, open }) {
  return html`<p class="filters">
    ${VERDICTS.map((verdict) => {
      const found = statements.flatMap((/** @type {any} */ each, /** @type {number} */ number) => verdictsOf(each).filter((one) => one === verdict).map(() => number));
      return found.length > 0 && html`<button class=${classOf(verdict)} onClick=${() => open(after(found, current))}>${SIGNS[verdict]} ${found.length} ${verdict}</button> `;
    })}
  </p>`;
}

/** @param {any} props */
function Statement({ report, place, number, leaf }) {
  const statement = report.statements[number];
  const claims = [...statement.claims].sort((one, other) => VERDICTS.indexOf(one.verdict) - VERDICTS.indexOf(other.verdict));
  const sources = claims.flatMap((claim) => claim.sources);
  const shown = sources.find((each) => each.leaf === leaf) || sources.find((each) => each.verdict === claims[0].verdict) || sources[0];
  return html`
    ${!statement.checkable && html`<p class="notice">This needs no source.</p>`}
    ${claims.map(
      (claim) => html`
        <blockquote class="claim">${claim.claim}</blockquote>
        <p><span class=${classOf(claim.verdict)}>${SIGNS[claim.verdict]} ${claim.verdict}</span></p>
        <ol class="sources">
          ${claim.sources.map(
            (/** @type {any} */ source) => html`<li>
              <a href=${at(place, number, source.leaf)} aria-current=${source === shown ? "true" : undefined}>${source.verdict}</a>${" "}
              <${OutsideLink} href=${source.page}><bdi>${source.page}</bdi><//>
              ${source.depth !== "nothing" && html`<span class="where">${source.depth}</span>`}
              ${source.quote && html`<${Quote} quote=${{ text: source.quote, match: source.quote_match }} />`}
              ${source.reason && html`<p class="why">${source.reason}</p>`}
            </li>`,
          )}
        </ol>
      `,
    )}
    ${shown && html`<${PageOf} key=${shown.leaf} report=${report} source=${shown} />`}
  `;
}

/** The page of a source, with the quotation marked. @param {any} props */
function PageOf({ report, source }) {
  const { agent, task, checks } = report;
  const check = checks[source.leaf];
  if (!check) return null;
  const quote = check.votes.find((/** @type {any} */ vote) => vote.quote?.text === source.quote)?.quote;
  return html`<${CheckedPage} ...${{ agent, task, check, quote }} />`;
}

/** @param {{report: any}} props */
function Figures({ report }) {
  return html`
    <h2>Figures</h2>
    <table>
      <tbody>
        ${report.figures.map((/** @type {string[]} */ [label, figure]) => html`<tr><th scope="row">${label}</th><td>${figure}</td></tr>`)}
      </tbody>
    </table>
    ${report.lists.map(
      (/** @type {[string, string[]]} */ [title, names]) => html`<h2>${title}</h2>
        <ul class="sources">
          ${names.map((name) => html`<li><bdi>${name}</bdi></li>`)}
        </ul>`,
    )}
  `;
}

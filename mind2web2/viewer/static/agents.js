// The table of agents: their figures, with intervals drawn on one scale.

import { html, address, counted, number, percent } from "viewer/parts";
import { across, Mark, MarkInText, QUARTERS } from "viewer/plots";

/** @typedef {{title: string, hint?: string, value: (agent: any) => any, rank?: (agent: any) => number | null, isPlot?: boolean}} Column */

/** @type {Record<string, Column>} */
const COLUMNS = {
  avg_score: {
    title: "partial completion",
    hint: "the mean score of all answers: the share of the points that the agent gets",
    value: (agent) => withInterval(agent, "avg_score", agent.metrics.avg_score),
    rank: (agent) => agent.metrics.avg_score,
    isPlot: true,
  },
  success_rate: {
    title: "success rate",
    hint: "the share of answers with the full score of 1",
    value: (agent) => withInterval(agent, "success_rate", agent.metrics.success_rate),
    rank: (agent) => agent.metrics.success_rate,
    isPlot: true,
  },
  pass_at: {
    title: "pass@k",
    hint: "the share of tasks that at least one of k runs solves completely",
    value: (agent) => [`@${agent.pass_at.k} `, figureWithInterval(agent, "pass_at", agent.pass_at.value)],
    rank: (agent) => agent.pass_at.value,
  },
  corrected: {
    title: "corrected for the judge's errors",
    hint: "partial completion on these tasks as labels of people, or a strong judge on a sample, correct it",
    value: (agent) => corrected(agent.corrected),
    rank: (agent) => agent.corrected?.corrected ?? null,
  },
  spread: {
    title: "spread of runs' means",
    hint: "how far the means of single runs lie apart",
    value: (agent) => number(agent.metrics.avg_score_std),
    rank: (agent) => agent.metrics.avg_score_std,
  },
  size: { title: "tasks × runs", value: (agent) => `${agent.metrics.num_tasks} × ${agent.metrics.num_runs}` },
  missing: {
    title: "answers without a score",
    value: (agent) => agent.missing.length,
    rank: (agent) => agent.missing.length,
  },
  cost: {
    title: "judge's cost",
    value: (agent) => (agent.cost_usd === null ? "–" : `$${agent.cost_usd.toFixed(2)}`),
    rank: (agent) => agent.cost_usd,
  },
  time: {
    title: "agent's time",
    value: (agent) => (agent.metrics.avg_time_seconds === null ? "–" : `${agent.metrics.avg_time_seconds} s`),
    rank: (agent) => agent.metrics.avg_time_seconds,
  },
};
export const FIRST_ORDER = "avg_score";
/** @type {[string, string][]} */
const STEPS = [
  ["zero", "0"],
  ["low", "below 1/3"],
  ["middle", "below 2/3"],
  ["high", "below 1"],
  ["full", "1"],
];

/**
 * Agents with the greatest value of a column first; those without a value last.
 * @param {any[]} agents @param {string | undefined} column
 */
export function ordered(agents, column) {
  const rank = COLUMNS[column || FIRST_ORDER]?.rank;
  if (!rank) return agents;
  /** @param {any} agent */
  const height = (agent) => rank(agent) ?? -Infinity;
  return [...agents].sort((one, other) => (height(one) === height(other) ? 0 : height(other) - height(one)));
}

/**
 * @param {{agents: any[], answers: any[], places: Map<string, number>, options: Record<string, string>}} props
 *   the agents in the order to show, and each one's place among all, which its mark follows
 */
export function Agents({ agents: all, answers, places, options }) {
  const withAnswers = new Set(answers.map((row) => row.agent));
  const agents = all.filter((agent) => withAnswers.has(agent.name));
  const empty = all.filter((agent) => !withAnswers.has(agent.name)).map((agent) => agent.name);
  const columns = Object.keys(COLUMNS).filter((name) => name !== "corrected" || agents.some((agent) => agent.corrected));
  const failed = agents.filter((agent) => agent.failed_check);
  return html`
    ${failed.map((agent) => html`<p class="notice error"><bdi>${agent.name}</bdi>: ${agent.failed_check}</p>`)}
    <div class="table-wrap" tabindex="0" hidden=${!agents.length}>
      <table class="agents">
        <thead>
          <tr>
            <th scope="col">agent, its judge</th>
            ${columns.map((name) => html`<${Heading} ...${{ name, options }} />`)}
          </tr>
        </thead>
        <tbody>
          ${agents.map(
            (agent) =>
              html`<tr key=${agent.name}>
                <th scope="row">
                  <${MarkInText} place=${places.get(agent.name)} /> <bdi>${agent.name}</bdi>
                  <div class="judges">${agent.judges.join("; ") || "–"}</div>
                </th>
                ${columns.map((name) => html`<td class=${COLUMNS[name].isPlot ? "plot" : ""}>
                  ${COLUMNS[name].value(agent)}
                  ${COLUMNS[name].isPlot && html`<${Interval} ...${{ agent, name, place: places.get(agent.name) }} />`}
                </td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <${Legend} columns=${columns} />
    ${
      agents.some((agent) => !Object.keys(agent.intervals).length) &&
      html`<p class="hint">Too few tasks for a 95% interval: six with different values are needed.</p>`
    }
    <${Warnings} agents=${agents} />
    ${!answers.length && html`<p class="notice">There are no answers yet.</p>`}
    ${answers.length > 0 && empty.length > 0 && html`<p class="notice">No results yet: <bdi>${empty.join(", ")}</bdi></p>`}
  `;
}

/** A column's name, which is a link to the agents in the order of it. @param {{name: string, options: Record<string, string>}} props */
function Heading({ name, options }) {
  const { title, rank, isPlot } = COLUMNS[name];
  const isChosen = name === (options.agents || FIRST_ORDER);
  const link = address("overview", [], { ...options, agents: name === FIRST_ORDER ? "" : name });
  return html`<th scope="col" class=${isPlot ? "plot" : ""} aria-sort=${isChosen ? "descending" : undefined}>
    ${rank ? html`<a class="sort" href=${link}>${title}<span aria-hidden="true">${isChosen ? "\u00a0↓" : ""}</span></a>` : title}
    ${isPlot && html`<span class="scale" aria-hidden="true">${QUARTERS.map((share) => html`<span>${share * 100}</span>`)}</span>`}
  </th>`;
}

/** @param {any} agent @param {string} name @param {number | null} value */
function withInterval(agent, name, value) {
  return html`<strong>${percent(value)}</strong>${interval(agent, name)}`;
}

/** @param {any} agent @param {string} name @param {number | null} value */
function figureWithInterval(agent, name, value) {
  return html`${percent(value)}${interval(agent, name)}`;
}

/** @param {any} agent @param {string} name */
function interval(agent, name) {
  const limits = agent.intervals[name];
  return limits ? html` <span class="interval">${limits.map(percent).join(" to ")}</span>` : null;
}

/**
 * The figure's place between 0 and 100% with its interval; the text beside it has the same numbers.
 * @param {{agent: any, name: string, place: number}} props
 */
function Interval({ agent, name, place }) {
  const value = agent.metrics[name];
  if (value === null) return null;
  const limits = agent.intervals[name];
  const better = name === "avg_score" ? agent.corrected?.corrected : null;
  return html`<svg class="interval-plot" width="100%" height="26" aria-hidden="true">
    ${QUARTERS.map((share) => html`<line class="guide" x1=${across(share)} x2=${across(share)} y1="0" y2="26" />`)}
    ${limits && html`<${Span} limits=${limits} y=${11} />`}
    ${typeof better === "number" && html`<${Mark} ...${{ place, x: across(better), y: 11, isOpen: true }} />`}
    <${Mark} ...${{ place, x: across(value), y: 11 }} />
  </svg>`;
}

/** @param {{limits: [number, number], y: number}} props */
function Span({ limits: [low, high], y }) {
  return html`<line class="between" x1=${across(low)} x2=${across(high)} y1=${y} y2=${y} />`;
}

/** @param {any} found */
function corrected(found) {
  if (!found) return "no labels, no strong judge";
  if (found.reason) return `not corrected by ${found.by}: ${found.reason}`;
  const limits = found.these_tasks ? html` <span class="interval">${percent(found.these_tasks.low)} to ${percent(found.these_tasks.high)}</span>` : "";
  return html`${found.corrected === null ? "too few tasks" : percent(found.corrected)}${limits}, ${found.by}`;
}

/** @param {{columns: string[]}} props */
function Legend({ columns }) {
  const explained = columns.map((name) => COLUMNS[name]).filter((column) => column.hint);
  return html`<details class="legend">
    <summary>What the figures and colours mean</summary>
    <dl>
      ${explained.map(({ title, hint }) => html`<dt>${title}</dt><dd>${hint}</dd>`)}
      <dt>thick line, small figures</dt>
      <dd>the 95% interval: what other tasks of this kind would make likely</dd>
      <dt>thin line below</dt>
      <dd>the range if weak verdicts change</dd>
      ${columns.includes("corrected") && html`<dt>open mark</dt><dd>corrected for the judge's errors</dd>`}
    </dl>
    <p>Scores: ${STEPS.map(([step, label]) => html`<span class=${`score ${step}`}>${label}</span> `)}</p>
  </details>`;
}

/** @param {{agents: any[]}} props */
function Warnings({ agents }) {
  const warnings = agents.flatMap((agent) => agent.warnings.map((/** @type {string} */ text) => [agent.name, text]));
  if (!warnings.length) return null;
  return html`<details class="warnings">
    <summary>${counted(warnings.length, "warning")}</summary>
    <ul>
      ${warnings.map(([agent, text]) => html`<li><bdi>${agent}</bdi>: ${text}</li>`)}
    </ul>
  </details>`;
}

// All agents: their metrics, and a matrix of tasks by runs in which a cell is a score.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isFile } from "viewer/source";
import { html, address, counted, MARKS, number, percent, Score, useData, Waiting } from "viewer/parts";

const FILTERS = { failed: "below 1", zero: "score 0", unscored: "no score", changed: "score changed", ...MARKS };
/** The title of a report that has one of its own. */
const TITLE = isFile ? document.documentElement.dataset.title : "";
const MOST_CLAIMS_SHOWN = 60;
const MIN_SEARCH_CHARS = 2;

/** @param {{options: Record<string, string>}} props */
export function Overview({ options }) {
  const { data, error } = useData("overview", {});
  const chosen = options.filter || "";
  const [query, setQuery] = useState(options.search || "");
  const found = useSearch(query.trim().toLowerCase());
  // The search in the address: it follows when typing pauses, and leads where a link changes it.
  const kept = useRef(options.search || "");
  useEffect(() => {
    const search = options.search || "";
    if (search === kept.current) return;
    kept.current = search;
    setQuery(search);
  }, [options]);
  useEffect(() => {
    const later = setTimeout(() => {
      kept.current = query;
      keepInAddress(query);
    }, 150);
    return () => clearTimeout(later);
  }, [query]);
  if (!data) return html`<${Waiting} error=${error} />`;
  return html`
    <h1>${TITLE || "Results"}</h1>
    ${isFile && html`<${Opening} />`}
    <${Agents} agents=${data.agents} answers=${data.answers} />
    <div class="tools">
      <label
        >Search tasks and claims
        <input
          type="search"
          value=${query}
          onInput=${(/** @type {any} */ event) => setQuery(event.target.value)}
        />
      </label>
      <${Filters} answers=${data.answers} chosen=${chosen} search=${query} />
    </div>
    <${Matrix} data=${data} chosen=${chosen} found=${found} />
    ${found && html`<${ClaimsFound} found=${found} />`}
  `;
}

/**
 * Put the search into the address that this view has by now, without an event, which would come after the next letter.
 * @param {string} search
 */
function keepInAddress(search) {
  const [path, query] = location.hash.split("?");
  if (path && path !== address("overview")) return;
  const options = Object.fromEntries(new URLSearchParams(query));
  if (search !== (options.search || "")) history.replaceState(null, "", address("overview", [], { ...options, search }));
}

/** The report's first sentence. */
function Opening() {
  const { data } = useData("about", {});
  return data?.sentence ? html`<p class="opening">${data.sentence}</p>` : null;
}

/** @type {[string, string][]} */
const LEGEND = [
  ["partial completion", "the mean score of all answers: the share of the points that the agent gets"],
  ["success rate", "the share of answers with the full score of 1"],
  ["pass@k", "the share of tasks that at least one of k runs solves completely"],
  ["small figures", "the 95% interval: what other tasks of this kind would make likely"],
  ["had weak verdicts gone either way", "partial completion if every doubtful verdict were a failure, and if each were a pass"],
  ["std over runs", "how far the means of single runs lie apart"],
];
/** @type {[string, string][]} */
const STEPS = [
  ["zero", "0"],
  ["low", "below 1/3"],
  ["middle", "below 2/3"],
  ["high", "below 1"],
  ["full", "1"],
];

function Legend() {
  return html`<details class="legend">
    <summary>What the figures and colours mean</summary>
    <dl>${LEGEND.map(([name, meaning]) => html`<dt>${name}</dt><dd>${meaning}</dd>`)}</dl>
    <p>Scores: ${STEPS.map(([step, label]) => html`<span class=${`score ${step}`}>${label}</span> `)}</p>
  </details>`;
}

/** @param {any} found */
function corrected(found) {
  if (!found) return "no labels, no strong judge";
  const interval = found.these_tasks ? ` (${percent(found.these_tasks.low)} to ${percent(found.these_tasks.high)})` : "";
  return `${found.corrected === null ? "no better value" : percent(found.corrected)}${interval}, ${found.by}`;
}

/** @param {{agents: any[], answers: any[]}} props */
function Agents({ agents: all, answers }) {
  const withAnswers = new Set(answers.map((row) => row.agent));
  const agents = all.filter((agent) => withAnswers.has(agent.name));
  const empty = all.filter((agent) => !withAnswers.has(agent.name)).map((agent) => agent.name);
  /** @type {[string, (agent: any) => any][]} */
  const rows = [
    ["partial completion", (agent) => withInterval(agent, "avg_score", agent.metrics.avg_score)],
    ["corrected for the judge's errors, these tasks", (agent) => corrected(agent.corrected)],
    ["success rate", (agent) => withInterval(agent, "success_rate", agent.metrics.success_rate)],
    ["pass@k", (agent) => [`@${agent.pass_at.k} `, withInterval(agent, "pass_at", agent.pass_at.value)]],
    ["partial completion, had weak verdicts gone either way", (agent) => (agent.bounds?.avg_score ? agent.bounds.avg_score.map(percent).join(" to ") : "not recorded")],
    ["std over runs", (agent) => number(agent.metrics.avg_score_std)],
    ["tasks × runs", (agent) => `${agent.metrics.num_tasks} × ${agent.metrics.num_runs}`],
    ["answers without a score", (agent) => agent.missing.length],
    ["judge's cost", (agent) => (agent.cost_usd === null ? "–" : `$${agent.cost_usd.toFixed(2)}`)],
    ["agent's time", (agent) => (agent.metrics.avg_time_seconds === null ? "–" : `${agent.metrics.avg_time_seconds} s`)],
    ["judge", (agent) => agent.judges.join("; ") || "–"],
  ];
  const failed = agents.filter((agent) => agent.failed_check);
  const warnings = agents.flatMap((agent) => agent.warnings.map((/** @type {string} */ text) => [agent.name, text]));
  return html`
    ${failed.map((agent) => html`<p class="notice error"><bdi>${agent.name}</bdi>: ${agent.failed_check}</p>`)}
    <div class="table-wrap" tabindex="0" hidden=${!agents.length}>
      <table class="agents">
        <thead>
          <tr>
            <th scope="col"><span class="visually-hidden">metric</span></th>
            ${agents.map((agent) => html`<th scope="col"><bdi>${agent.name}</bdi></th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ([name, value]) =>
              html`<tr>
                <th scope="row">${name}</th>
                ${agents.map((agent) => html`<td>${value(agent)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <${Legend} />
    ${
      agents.some((agent) => !Object.keys(agent.intervals).length) &&
      html`<p class="hint">A 95% interval needs six tasks with different values.</p>`
    }
    ${
      warnings.length > 0 &&
      html`<details class="warnings">
        <summary>${counted(warnings.length, "warning")}</summary>
        <ul>
          ${warnings.map(([agent, text]) => html`<li><bdi>${agent}</bdi>: ${text}</li>`)}
        </ul>
      </details>`
    }
    ${!answers.length && html`<p class="notice">There are no answers yet.</p>`}
    ${answers.length > 0 && empty.length > 0 && html`<p class="notice">No results yet: <bdi>${empty.join(", ")}</bdi></p>`}
  `;
}

/** @param {any} agent @param {string} name @param {number | null} value */
function withInterval(agent, name, value) {
  const limits = agent.intervals[name];
  if (!limits) return percent(value);
  const [low, high] = limits;
  return html`${percent(value)} <span class="interval">${percent(low)} to ${percent(high)}</span>
    <svg class="interval-bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="range" x="0" y="3" width="100" height="2" />
      <rect class="between" x=${low * 100} y="1" width=${Math.max(0.5, (high - low) * 100)} height="6" />
      <rect class="point" x=${(value || 0) * 100 - 0.6} y="0" width="1.2" height="8" />
    </svg>`;
}

/** @param {{answers: any[], chosen: string, search: string}} props */
function Filters({ answers, chosen, search }) {
  const counts = Object.keys(FILTERS).map((name) => [name, answers.filter((row) => isChosen(row, name)).length]);
  return html`<div class="filters" role="group" aria-label="Show only answers with">
    <a class=${`chip ${chosen ? "" : "on"}`} href=${address("overview", [], { search })}>all <span class="count">${answers.length}</span></a>
    ${counts
      .filter(([name, count]) => count || name === chosen)
      .map(
        ([name, count]) =>
          html`<a
            class=${`chip ${chosen === name ? "on" : ""}`}
            aria-current=${chosen === name ? "true" : undefined}
            href=${address("overview", [], { filter: chosen === name ? "" : String(name), search })}
            >${FILTERS[/** @type {keyof FILTERS} */ (name)]} <span class="count">${count}</span></a
          >`,
      )}
  </div>`;
}

/** @param {any} row @param {string} filter */
function isChosen(row, filter) {
  if (!filter) return true;
  if (filter === "failed") return row.score !== null && row.score < 1;
  if (filter === "zero") return row.score === 0;
  if (filter === "unscored") return row.score === null;
  if (filter === "changed") return row.before !== undefined && row.before !== null && row.before !== row.score;
  return (row.marks || []).includes(filter);
}

/** @param {{data: any, chosen: string, found: any}} props */
function Matrix({ data, chosen, found }) {
  const { tasks, runs } = useMemo(() => matrixOf(data), [data]);
  const shown = tasks.filter(
    (task) =>
      (!found || task.name.toLowerCase().includes(found.words) || found.tasks?.has(task.name)) &&
      task.rows.some((/** @type {any} */ row) => isChosen(row, chosen)),
  );
  return html`
    <h2>${counted(shown.length, "task")}${shown.length < tasks.length ? ` of ${tasks.length}` : ""}</h2>
    ${
      data.answers.some((/** @type {any} */ row) => row.marks?.length) &&
      html`<p class="hint"><span class="sign">!</span> something to look at; point at the score to see it, or filter by it</p>`
    }
    ${
      shown.length === 0
        ? html`<p class="notice">No task matches. <a href="#/overview">Show all</a></p>`
        : html`<div class="table-wrap" tabindex="0">
            <table class="matrix">
              <thead>
                <tr>
                  <th scope="col" rowspan="2">task</th>
                  ${data.agents.map(
                    (/** @type {any} */ agent) =>
                      html`<th scope="colgroup" colspan=${(runs.get(agent.name) || []).length + 1}>
                        <bdi>${agent.name}</bdi>
                      </th>`,
                  )}
                </tr>
                <tr class="runs">
                  ${data.agents.map(
                    (/** @type {any} */ agent) =>
                      html`${(runs.get(agent.name) || []).map((run) => html`<th scope="col" title=${run}><bdi>${run}</bdi></th>`)}
                        <th scope="col">mean</th>`,
                  )}
                </tr>
              </thead>
              <tbody>
                ${shown.map(
                  (task) =>
                    html`<tr key=${task.name}>
                      <th scope="row" title=${task.name}><bdi>${task.name}</bdi></th>
                      ${data.agents.map((/** @type {any} */ agent) => cells(agent.name, task, runs, chosen))}
                    </tr>`,
                )}
              </tbody>
            </table>
          </div>`
    }
  `;
}

/** @param {string} agent @param {any} task @param {Map<string, string[]>} runs @param {string} chosen */
function cells(agent, task, runs, chosen) {
  const of = task.byAgent.get(agent) || new Map();
  const scores = [...of.values()].map((row) => row.score).filter((score) => score !== null);
  const mean = scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null;
  return html`${(runs.get(agent) || []).map((run) => {
      const row = of.get(run);
      if (!row) return html`<td class="cell absent" title=${`${run}: there is no such answer`}>·</td>`;
      const marks = (row.marks || []).map((/** @type {keyof MARKS} */ mark) => MARKS[mark] || mark);
      const title = [run, row.reason, ...marks].filter(Boolean).join("; ");
      return html`<td class=${`cell ${isChosen(row, chosen) ? "" : "dim"}`}>
        <a href=${address("answer", [agent, task.name, run])} title=${title} aria-label=${`${run} of ${task.name}`}
          ><${Score} score=${row.score} />${
            marks.length > 0 && html`<span class="mark" aria-hidden="true">!</span>`
          }</a
        >
      </td>`;
    })}
    <td class="mean">${number(mean, 3)}</td>`;
}

/** @param {any} data */
function matrixOf(data) {
  const runs = new Map();
  const tasks = new Map();
  for (const row of data.answers) {
    if (!runs.has(row.agent)) runs.set(row.agent, new Set());
    runs.get(row.agent).add(row.answer);
    if (!tasks.has(row.task)) tasks.set(row.task, { name: row.task, rows: [], byAgent: new Map() });
    const task = tasks.get(row.task);
    task.rows.push(row);
    if (!task.byAgent.has(row.agent)) task.byAgent.set(row.agent, new Map());
    task.byAgent.get(row.agent).set(row.answer, row);
  }
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  return {
    tasks: [...tasks.values()].sort((one, other) => natural(one.name, other.name)),
    runs: new Map([...runs].map(([agent, names]) => [agent, [...names].sort(natural)])),
  };
}

/**
 * Look words up in the texts of all tasks and claims, which are loaded by the first search.
 * @param {string} words
 * @returns {{words: string, error?: string | null, tasks?: Set<string>, rows?: any[], count?: number} | null}
 */
function useSearch(words) {
  const [isWanted, setWanted] = useState(false);
  useEffect(() => {
    if (words.length >= MIN_SEARCH_CHARS) setWanted(true);
  }, [words]);
  const { data, error } = useData(isWanted ? "claims" : "overview", {});
  const texts = useMemo(() => (isWanted && data ? data.map((/** @type {any[]} */ row) => row[5].toLowerCase()) : null), [data, isWanted]);
  return useMemo(() => {
    if (words.length < MIN_SEARCH_CHARS) return null;
    if (!texts) return { words, error };
    const tasks = new Set();
    const rows = [];
    let count = 0;
    for (let place = 0; place < texts.length; place += 1) {
      if (!texts[place].includes(words)) continue;
      const [, task, , leaf] = data[place];
      tasks.add(task);
      // Without a leaf, it is the text of the task.
      if (leaf) count += 1;
      if (leaf && rows.length < MOST_CLAIMS_SHOWN) rows.push(data[place]);
    }
    return { words, tasks, rows, count };
  }, [words, texts, error]);
}

/** @param {{found: any}} props */
function ClaimsFound({ found }) {
  if (!found.rows) return html`<${Waiting} error=${found.error} />`;
  return html`
    <h2>
      ${counted(found.count, "claim")}${found.count > found.rows.length ? `, the first ${found.rows.length} shown` : ""}
    </h2>
    <ul class="claims">
      ${found.rows.map(
        (/** @type {any[]} */ [agent, task, answer, leaf, status, text]) =>
          html`<li>
            <a href=${address("evidence", [agent, task, answer, leaf])}
              ><span class=${`dot ${status}`} title=${status}></span>${text}</a
            >
            <span class="where"><bdi>${agent}</bdi> / <bdi>${task}</bdi> / ${answer}</span>
          </li>`,
      )}
    </ul>
  `;
}

// All agents with their figures, the tasks in a plot and in a matrix of scores, and a search.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isFile } from "viewer/source";
import { html, address, counted, useData, Waiting } from "viewer/parts";
import { Agents, ordered } from "viewer/agents";
import { Filters, isChosen } from "viewer/filters";
import { Matrix } from "viewer/matrix";
import { inOrder, OrderChoice, TaskPlot, tasksOf } from "viewer/tasks";

/** The title of a report that has one of its own. */
const TITLE = isFile ? document.documentElement.dataset.title : "";
const MAX_CLAIMS_SHOWN = 60;
const MIN_SEARCH_CHARS = 2;

/** @param {{options: Record<string, string>}} props */
export function Overview({ options }) {
  const { data, error } = useData("overview", {});
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
  // The address has the search only when typing pauses.
  const now = { ...options, search: query };
  if (!data) return html`<${Waiting} error=${error} />`;
  const places = new Map(data.agents.map((/** @type {any} */ agent, /** @type {number} */ place) => [agent.name, place]));
  const agents = ordered(data.agents, options.agents);
  return html`
    <h1>${TITLE || "Results"}</h1>
    <${Agents} ...${{ agents, answers: data.answers, places, options: now }} />
    <div class="tools">
      <label
        >Search tasks and claims
        <input
          type="search"
          value=${query}
          onInput=${(/** @type {any} */ event) => setQuery(event.target.value)}
        />
      </label>
      <${OrderChoice} options=${now} />
      <${Filters} ...${{ answers: data.answers, chosen: options.filter || "", options: now }} />
    </div>
    <${Tasks} ...${{ answers: data.answers, agents, places, found, options: now }} />
    ${found && html`<${ClaimsFound} found=${found} />`}
  `;
}

/** @param {{answers: any[], agents: any[], places: Map<string, number>, found: any, options: Record<string, string>}} props */
function Tasks({ answers, agents, places, found, options }) {
  const chosen = options.filter || "";
  const all = useMemo(() => tasksOf(answers), [answers]);
  const tasks = inOrder(all, options.tasks).filter(
    (task) =>
      (!found || task.name.toLowerCase().includes(found.words) || found.tasks?.has(task.name)) &&
      task.rows.some((row) => isChosen(row, chosen)),
  );
  return html`
    <h2>${counted(tasks.length, "task")}${tasks.length < all.length ? ` of ${all.length}` : ""}</h2>
    ${
      tasks.length === 0
        ? html`<p class="notice">No task matches. <a href="#/overview">Show all</a></p>`
        : html`
            <${TaskPlot} ...${{ tasks, agents, places, options }} />
            <h2>Scores of all runs</h2>
            <${Matrix} ...${{ answers, tasks, agents, places, chosen, current: options.task }} />
          `
    }
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
      if (leaf && rows.length < MAX_CLAIMS_SHOWN) rows.push(data[place]);
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

// Tasks in an order that the reader chooses, and a plot of them: a mark for each agent's mean on a line from 0 to 1.

import { html, address, number } from "viewer/parts";
import { across, colour, Mark, MarkInText, QUARTERS } from "viewer/plots";

/** @typedef {{name: string, rows: any[], byAgent: Map<string, Map<string, any>>, means: Map<string, number | null>}} Task */

const natural = new Intl.Collator("en", { numeric: true }).compare;

/** @type {Record<string, {title: string, height: (task: Task) => number}>} */
const ORDERS = {
  // Tasks without any score come last in either direction.
  lowest: { title: "lowest mean first", height: (task) => overall(task) ?? Infinity },
  highest: { title: "highest mean first", height: (task) => -(overall(task) ?? -Infinity) },
  apart: { title: "agents most apart", height: (task) => -range(meansOf(task)) },
  runs: { title: "runs most apart", height: (task) => -rangeOfRuns(task) },
  name: { title: "name", height: () => 0 },
};
const FIRST_ORDER = "lowest";
/** Fewer tasks are easier to compare one below the other than in columns. */
const FEW = 15;

/**
 * All tasks, each with the answers and the mean score of every agent.
 * @param {any[]} answers
 * @returns {Task[]}
 */
export function tasksOf(answers) {
  /** @type {Map<string, Task>} */
  const tasks = new Map();
  for (const row of answers) {
    /** @type {Task} */
    const task = tasks.get(row.task) || { name: row.task, rows: [], byAgent: new Map(), means: new Map() };
    tasks.set(row.task, task);
    task.rows.push(row);
    const runs = task.byAgent.get(row.agent) || new Map();
    task.byAgent.set(row.agent, runs.set(row.answer, row));
  }
  for (const task of tasks.values()) {
    for (const [agent, runs] of task.byAgent) task.means.set(agent, mean(scoresOf(runs)));
  }
  return [...tasks.values()].sort((one, other) => natural(one.name, other.name));
}

/**
 * Tasks in an order; those that it does not tell apart by their names, as they come.
 * @param {Task[]} tasks @param {string | undefined} order
 */
export function inOrder(tasks, order) {
  const { height } = ORDERS[order || FIRST_ORDER] || ORDERS[FIRST_ORDER];
  const heights = new Map(tasks.map((task) => [task.name, height(task)]));
  /** @param {Task} task */
  const of = (task) => heights.get(task.name) ?? 0;
  // Two infinite heights have no difference that is a number.
  return [...tasks].sort((one, other) => of(one) - of(other) || 0);
}

/** @param {{options: Record<string, string>}} props */
export function OrderChoice({ options }) {
  const chosen = ORDERS[options.tasks] ? options.tasks : FIRST_ORDER;
  /** @param {any} event */
  const choose = (event) => {
    const tasks = event.target.value;
    location.hash = address("overview", [], { ...options, tasks: tasks === FIRST_ORDER ? "" : tasks });
  };
  return html`<label
    >Order of tasks
    <select onChange=${choose}>
      ${Object.entries(ORDERS).map(([name, { title }]) => html`<option value=${name} selected=${name === chosen}>${title}</option>`)}
    </select>
  </label>`;
}

/** @param {{tasks: Task[], agents: any[], places: Map<string, number>, options: Record<string, string>}} props */
export function TaskPlot({ tasks, agents, places, options }) {
  return html`
    <p class="hint key">
      ${agents.map((agent) => html`<span><${MarkInText} place=${places.get(agent.name)} /> <bdi>${agent.name}</bdi></span> `)}
      <span>Each line runs from 0 to 1; a mark is an agent's mean, a tick one of its runs.</span>
    </p>
    <ol class=${`task-plot ${tasks.length < FEW ? "few" : ""}`}>
      ${tasks.map((task) => html`<${TaskLine} key=${task.name} ...${{ task, agents, places, options }} />`)}
    </ol>
  `;
}

/** @param {{task: Task, agents: any[], places: Map<string, number>, options: Record<string, string>}} props */
function TaskLine({ task, agents, places, options }) {
  const means = agents.map((agent) => ({ name: agent.name, place: places.get(agent.name) || 0, score: task.means.get(agent.name) ?? null }));
  const figures = means.map(({ name, score }) => `${name} ${score === null ? "no score" : number(score)}`).join(", ");
  return html`<li>
    <a href=${address("overview", [], { ...options, task: task.name })} title=${`${task.name}: ${figures}`}>
      <span class="name"><bdi>${task.name}</bdi></span>
      <span class="visually-hidden">: ${figures}</span>
      <svg width="100%" height="18" aria-hidden="true">
        ${QUARTERS.map((share) => html`<line class="guide" x1=${across(share)} x2=${across(share)} y1="0" y2="18" />`)}
        ${means.map(({ name, place }) => scoresOf(task.byAgent.get(name)).map((score) => html`<line class=${`tick ${colour(place)}`} x1=${across(score)} x2=${across(score)} y1="4" y2="14" />`))}
        ${means.map(({ place, score }) => score !== null && html`<${Mark} ...${{ place, x: across(score), y: 9 }} />`)}
      </svg>
    </a>
  </li>`;
}

/** @param {Map<string, any> | undefined} runs */
function scoresOf(runs) {
  return [...(runs?.values() || [])].map((row) => row.score).filter((score) => score !== null);
}

/** @param {number[]} scores */
function mean(scores) {
  return scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null;
}

/** @param {number[]} scores */
function range(scores) {
  return scores.length ? Math.max(...scores) - Math.min(...scores) : 0;
}

/** @param {Task} task */
function meansOf(task) {
  return [...task.means.values()].filter((value) => value !== null);
}

/** @param {Task} task */
function overall(task) {
  return mean(meansOf(task));
}

/** @param {Task} task */
function rangeOfRuns(task) {
  return Math.max(...[...task.byAgent.values()].map((runs) => range(scoresOf(runs))));
}

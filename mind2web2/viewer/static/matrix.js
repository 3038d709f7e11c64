// A matrix of tasks by runs, in which a cell is the score of an answer.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { html, address, MARKS, number, Score } from "viewer/parts";
import { MarkInText } from "viewer/plots";
import { isChosen } from "viewer/filters";

/**
 * @param {{answers: any[], tasks: any[], agents: any[], places: Map<string, number>, chosen: string, current: string | undefined}} props
 *   tasks (of tasks.js) and agents, both in the order to show, and the task that the address leads to
 */
export function Matrix({ answers, tasks, agents, places, chosen, current }) {
  const runs = useMemo(() => runsOf(answers), [answers]);
  const row = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => row.current?.focus(), [current]);
  return html`
    ${
      answers.some((row) => row.marks?.length) &&
      html`<p class="hint"><span class="sign">!</span> needs a look: open the score, or filter by it</p>`
    }
    <div class="table-wrap" tabindex="0">
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col" rowspan="2">task</th>
            ${agents.map(
              ({ name }) =>
                html`<th scope="colgroup" colspan=${(runs.get(name) || []).length + 1}>
                  <${MarkInText} place=${places.get(name)} /> <bdi>${name}</bdi>
                </th>`,
            )}
          </tr>
          <tr class="runs">
            ${agents.map(
              ({ name }) =>
                html`${(runs.get(name) || []).map((run) => html`<th scope="col" title=${run}><bdi>${run}</bdi></th>`)}
                  <th scope="col">mean</th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${tasks.map(
            (task) =>
              html`<tr key=${task.name} class=${task.name === current ? "current" : ""}>
                <th scope="row" tabindex=${task.name === current ? -1 : undefined} ref=${task.name === current ? row : undefined}>
                  <a href=${address("leaves", [task.name])} title=${`what each leaf of ${task.name} did`}><bdi>${task.name}</bdi></a>
                </th>
                ${agents.map(({ name }) => cells(name, task, runs.get(name) || [], chosen))}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {string} agent @param {any} task @param {string[]} runs @param {string} chosen */
function cells(agent, task, runs, chosen) {
  const answers = task.byAgent.get(agent);
  return html`${runs.map((run) => {
      const row = answers?.get(run);
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
    <td class="mean">${number(task.means.get(agent))}</td>`;
}

/**
 * The names of each agent's runs.
 * @param {any[]} answers
 * @returns {Map<string, string[]>}
 */
function runsOf(answers) {
  /** @type {Map<string, Set<string>>} */
  const runs = new Map();
  for (const row of answers) runs.set(row.agent, (runs.get(row.agent) || new Set()).add(row.answer));
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  return new Map([...runs].map(([agent, names]) => [agent, [...names].sort(natural)]));
}

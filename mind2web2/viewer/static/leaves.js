// What each leaf of a task's rubric did in all results that are shown.

import { html, address, counted, number, percent, useData, Waiting } from "viewer/parts";

const natural = new Intl.Collator("en", { numeric: true }).compare;

/** @param {{steps: string[]}} props */
export function Leaves({ steps }) {
  return steps[0] ? html`<${OfTask} task=${steps[0]} />` : html`<${Tasks} />`;
}

function Tasks() {
  const { data, error } = useData("overview", {});
  if (!data) return html`<${Waiting} error=${error} />`;
  /** @type {string[]} */
  const tasks = [...new Set(data.answers.map((/** @type {any} */ row) => row.task))];
  return html`
    <h1>Leaves</h1>
    <p class="hint">What each leaf of a rubric did in all results, and which leaves tell nothing about the answers. Choose a task.</p>
    <ul class="leaf-tasks">
      ${tasks.sort(natural).map((task) => html`<li><a href=${address("leaves", [task])}><bdi>${task}</bdi></a></li>`)}
    </ul>
  `;
}

/** @param {{task: string}} props */
function OfTask({ task }) {
  const { data, error } = useData("leaves", { task });
  if (!data) return html`<${Waiting} error=${error} />`;
  return html`
    <h1>Leaves of <bdi>${task}</bdi></h1>
    <p>${counted(data.results, "result")} of <bdi>${data.agents.join(", ")}</bdi>. <a href="#/leaves">All tasks</a></p>
    ${data.too_few && html`<p class="notice">Too few results to judge leaves: ${data.enough} are needed, there are ${data.results}.</p>`}
    ${data.warning && html`<p class="notice">Note: ${data.warning}.</p>`}
    <div class="table-wrap" tabindex="0">
      <table class="leaves">
        <thead>
          <tr>
            <th scope="col">leaf</th>
            ${data.agents.map((/** @type {string} */ agent) => html`<th scope="col" title="share of its verdicts that passed"><bdi>${agent}</bdi></th>`)}
            <th scope="col">passed</th>
            <th scope="col">failed</th>
            <th scope="col">skipped</th>
            <th scope="col" title="correlation with the share of the other leaves that passed">r</th>
            <th scope="col">notes</th>
          </tr>
        </thead>
        <tbody>
          ${data.leaves.map((/** @type {any} */ row) => html`<${Leaf} key=${row.leaf} row=${row} agents=${data.agents} />`)}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {{row: any, agents: string[]}} props */
function Leaf({ row, agents }) {
  return html`<tr>
    <th scope="row" title=${row.leaf}>
      <bdi>${row.name}</bdi>${row.critical && " (gate)"}
      <span class="hint">${row.desc}</span>
    </th>
    ${agents.map((agent) => html`<td>${percent(row.by_agent[agent])}</td>`)}
    <td>${row.passed}</td>
    <td>${row.failed}</td>
    <td>${row.skipped}</td>
    <td>${number(row.correlation)}</td>
    <td>${row.notes.join(", ")}</td>
  </tr>`;
}

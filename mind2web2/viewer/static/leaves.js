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
    <${Figures} figures=${data.figures} />
    <div class="table-wrap" tabindex="0">
      <table class="leaves">
        <thead>
          <tr>
            <th scope="col">leaf</th>
            <th scope="col">passed</th>
            <th scope="col">failed</th>
            <th scope="col">skipped</th>
            <th scope="col" title="correlation with the share of the other leaves that passed">r</th>
            <th scope="col" title="of the results in which a judge decided it, those with a page">page</th>
            <th scope="col" title="the judge's replies for it">votes</th>
            <th scope="col" title="its part of the answers' costs">$</th>
            <th scope="col">notes</th>
          </tr>
        </thead>
        <tbody>
          ${data.leaves.map((/** @type {any} */ row) => html`<${Leaf} key=${row.leaf} row=${row} />`)}
        </tbody>
      </table>
    </div>
    <${Twins} twins=${data.twins} />
    <${Shares} title="By pages cited" shares=${data.by_pages} />
    <${Shares} title="By place in the rubric" shares=${data.by_position} />
  `;
}

/** @param {{row: any}} props */
function Leaf({ row }) {
  return html`<tr>
    <th scope="row" title=${row.leaf}>
      <bdi>${row.name}</bdi>${row.critical && " (gate)"}
      <span class="hint">${row.desc}</span>
    </th>
    <td>${row.counts.passed}</td>
    <td>${row.counts.failed}</td>
    <td>${row.counts.skipped}</td>
    <td>${number(row.correlation)}</td>
    <td>${row.judged ? `${row.with_page}/${row.judged}` : "–"}</td>
    <td>${row.judgments}</td>
    <td>${number(row.cost_usd, 4)}</td>
    <td>${notesOf(row).join(", ")}</td>
  </tr>`;
}

/** @param {any} row @returns {string[]} */
function notesOf(row) {
  return [
    ...row.labels,
    ...(row.counts.undecided ? [`never judged in ${row.counts.undecided}`] : []),
    ...(row.split ? [`votes differ in ${row.split}`] : []),
    ...(row.quotes_missing ? [`quotation not found in ${row.quotes_missing}`] : []),
    ...(row.stayed ? [row.stayed] : []),
  ];
}

/** @param {{figures: any}} props */
function Figures({ figures }) {
  return html`
    ${figures.saturated && html`<p class="notice">Saturated: every score is 0, or every one is 1, so that the task separates no agents.</p>`}
    ${
      figures.discrimination !== null &&
      html`<p class="figures">
        Between agents: ${number(figures.discrimination)} from worst to best
        ${figures.between_agents !== null && `, ${percent(figures.between_agents)} of the task's variance`}
        ${figures.variance_share !== null && `, and ${percent(figures.variance_share)} of all tasks' part`}.
      </p>`
    }
  `;
}

/** @param {{twins: string[][]}} props */
function Twins({ twins }) {
  if (!twins.length) return null;
  return html`
    <h2>Twins</h2>
    <p class="hint">The same verdict in every result: two leaves for one fact?</p>
    <ul class="twins">${twins.map((group) => html`<li><bdi>${group.join(", ")}</bdi></li>`)}</ul>
  `;
}

/** @param {{title: string, shares: Record<string, {passed: number, of: number}>}} props */
function Shares({ title, shares }) {
  const groups = Object.entries(shares);
  if (!groups.length) return null;
  return html`
    <h2>${title}</h2>
    <ul class="shares">
      ${groups.map(([name, { passed, of }]) => html`<li>${name}: ${percent(passed / of)} of ${counted(of, "judged leaf")} passed</li>`)}
    </ul>
  `;
}

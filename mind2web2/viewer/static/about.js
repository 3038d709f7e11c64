// The content of an exported file, who judged, and how to get the same scores again.

import { html, counted, moment, useData, Waiting } from "viewer/parts";

export function About() {
  const { data, error } = useData("about", {});
  if (!data) return html`<${Waiting} error=${error} />`;
  return html`
    <h1>About this file</h1>
    <table class="facts">
      <tbody>
        <tr><th scope="row">written</th><td>${moment(data.created)}, by mind2web2 ${data.version}</td></tr>
        <tr><th scope="row">agents</th><td>${data.agents.join(", ")}</td></tr>
        <tr><th scope="row">content</th><td>${counted(data.answers, "answer")} to ${counted(data.tasks, "task")}, with rubric trees, votes and reasons</td></tr>
        <tr><th scope="row">pages</th><td>${data.has_pages ? `texts and pictures of the cited pages, at most ${data.most_pictures_mb} MB of pictures a page` : "left out"}</td></tr>
        <tr><th scope="row">task texts</th><td>${data.has_task_texts ? "included" : "left out"}</td></tr>
        <tr><th scope="row">judged by</th><td>${data.judges.join("; ") || "a judge that the results do not name"}</td></tr>
      </tbody>
    </table>
    <p>The file opens from disk and connects to nothing. To get the same scores from the stored judgments:</p>
    <ol>
      <li>Export the judgments, where the answers were evaluated: ${data.export.map((/** @type {string} */ command) => html`<pre class="raw">${command}</pre>`)}</li>
      <li>Evaluate with that file, and with the answers, eval scripts and cached pages: ${data.replay.map((/** @type {string} */ command) => html`<pre class="raw">${command}</pre>`)}</li>
    </ol>
  `;
}

// Runs as they go on, sent by the server as they change.

import { useEffect, useState } from "preact/hooks";
import { html, address, counted, moment, Score } from "viewer/parts";
import { forget, program } from "viewer/source";

const STATES = { running: "running", ended: "ended", stopped: "stopped without an end: the same command goes on" };

export function Run() {
  const [runs, setRuns] = useState(/** @type {any[] | null} */ (null));
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    const events = new EventSource("/api/runs");
    events.onmessage = (event) => {
      setLost(false);
      setRuns(JSON.parse(event.data));
      // Results have changed: the other views load them again.
      forget();
    };
    events.onerror = () => setLost(true);
    return () => events.close();
  }, []);
  return html`
    <h1>Runs</h1>
    ${isLost && html`<p class="notice error" role="alert">The viewer's server does not answer. It may have been ended.</p>`}
    ${!runs && !isLost && html`<p class="notice" role="status">Loading …</p>`}
    ${runs && !runs.length && html`<p class="notice">No run has been started. Start one with: <code>${program} evaluate AGENT</code></p>`}
    ${(runs || []).map((run) => html`<${One} key=${run.agent} run=${run} />`)}
  `;
}

/** @param {{run: any}} props */
function One({ run }) {
  const rows = [
    ["state", STATES[/** @type {keyof STATES} */ (run.state)] || run.state],
    ["started", moment(run.started)],
    ["tasks", `${run.tasks_done} of ${run.tasks_total}`],
    ["judgments", `${run.judgments} asked, ${run.judgments_reused} reused`],
    ["requests", `${run.requests}`],
    ["tokens", `${run.tokens}`],
    ["cost", run.cost_usd === null ? "price unknown" : `$${run.cost_usd.toFixed(4)}`],
    ["retries", Object.entries(run.retries).map(([reason, count]) => `${reason} ${count}`).join(", ")],
    ["rate limit", run.rate_limit],
  ].filter(([, value]) => value);
  const errors = Object.entries(run.errors).sort((one, other) => other[1] - one[1]);
  return html`<section aria-label=${`Run of ${run.agent}`}>
    <h2><bdi>${run.agent}</bdi></h2>
    <p>
      <progress max=${run.answers_total || 1} value=${run.answers_done} aria-label="answers done"></progress> ${" "}
      ${run.answers_done} of ${counted(run.answers_total, "answer")}, ${run.answers_scored} with a score
    </p>
    <table class="facts">
      <tbody>
        ${rows.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
      </tbody>
    </table>
    ${errors.length > 0 && html`<h3>Answers without a score</h3>
    <ul>${errors.map(([reason, count]) => html`<li>${counted(count, "answer")}: ${reason}</li>`)}</ul>`}
    ${run.problems.length > 0 && html`<ul>${run.problems.map((/** @type {string} */ text) => html`<li>${text}</li>`)}</ul>`}
    ${run.running.length > 0 && html`<p class="hint">Now: ${run.running.slice(0, 12).join(", ")}${run.running.length > 12 ? " …" : ""}</p>`}
    ${run.newest.length > 0 && html`<h3>Newest scores</h3>`}
    <p class="newest">
      ${run.newest
        .slice()
        .reverse()
        .map((/** @type {any} */ each) => {
          const answer = each.answer.replace(/\.md$/, "");
          return html`<a href=${address("answer", [run.agent, each.task, answer])} title=${`${each.task} ${answer}`}
            ><bdi>${each.task} ${answer.replace(/^answer_/, "")}</bdi> <${Score} score=${each.score}
          /></a> `;
        })}
    </p>
  </section>`;
}

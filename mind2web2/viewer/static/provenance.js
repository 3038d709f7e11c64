// How a result was made: judge, script, versions, extractions.

import { html, moment, number } from "viewer/parts";

/** @param {{answer: any}} props */
export function Provenance({ answer }) {
  const { facts } = answer;
  const made = facts.provenance || {};
  const run = facts.run || {};
  const usage = facts.judge_usage || {};
  const check = run.judge_check;
  const rows = [
    ["judge", [facts.judge, facts.server && `at ${facts.server}`].filter(Boolean).join(" ")],
    ["judge's check", check && `${number(100 * check.accuracy, 0)}% of ${check.cases} cases right, set ${check.set_version}, ${check.checked.slice(0, 10)}`],
    ["script", facts.script],
    ["judged", moment(run.created)],
    ["seconds", number(run.seconds, 1)],
    ["judgments", usage.judgments],
    ["tokens", usage.input_tokens === undefined ? null : `${usage.input_tokens} in, ${usage.output_tokens} out`],
    ["cost", usage.cost_usd === null || usage.cost_usd === undefined ? null : `$${usage.cost_usd}`],
    ["quotations", facts.quotes && Object.entries(facts.quotes).map(([name, count]) => `${name.replace("_", " ")} ${count}`).join(", ")],
    ["agent's time", facts.time_seconds === undefined || facts.time_seconds === null ? null : `${facts.time_seconds} s`],
    ["replayed from", made.replayed_from?.path],
    ["result file", answer.file],
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`
    <table class="facts">
      <tbody>
        ${rows.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
      </tbody>
    </table>
    <${Raw} title="Extracted values and notes of the script" value=${answer.info} />
    <${Raw} title="Extractions" value=${answer.extractions} />
    <${Raw} title="Passages of the answer that look written for the judge" value=${facts.answer_flags} />
    <${Raw} title="Barred sources that the answer rests on" value=${facts.barred} />
    <${Raw} title="Provenance" value=${made} />
  `;
}

/** @param {{title: string, value: any}} props */
function Raw({ title, value }) {
  const isEmpty = !value || (Array.isArray(value) ? !value.flat().filter(Boolean).length : !Object.keys(value).length);
  if (isEmpty) return null;
  return html`<details>
    <summary>${title}</summary>
    <pre class="raw" tabindex="0">${JSON.stringify(value, null, 2)}</pre>
  </details>`;
}

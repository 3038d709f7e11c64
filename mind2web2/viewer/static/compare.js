// Two agents, or two runs: score differences by task, and the leaves that flipped.

import { useMemo } from "preact/hooks";
import { html, address, counted, number, Score, useData, Waiting } from "viewer/parts";
import { program } from "viewer/source";
import { LeafDoubts } from "viewer/doubts";

/** @param {{options: Record<string, string>}} props */
export function Compare({ options }) {
  const { data, error } = useData("overview", {});
  const { data: claims, error: claimsError } = useData("claims", {});
  const sides = useMemo(() => (data ? sidesOf(data) : []), [data]);
  if (!data || !claims) return html`<${Waiting} error=${error || claimsError} />`;
  // Two agents; with a single one, two of its runs.
  const others = data.agents.length > 1 ? sides : sides.filter((side) => side.includes(" / "));
  const one = sides.includes(options.a) ? options.a : others[0];
  const other = sides.includes(options.b) ? options.b : others.find((side) => side !== one) || one;
  const tasks = differences(data, one, other);
  const flips = flipped(claims, one, other);
  /** @param {string} name @param {string} value */
  const choose = (name, value) => (location.hash = address("compare", [], { a: one, b: other, [name]: value }));
  const mean = tasks.length ? tasks.reduce((sum, task) => sum + task.change, 0) / tasks.length : null;
  return html`
    <h1>Compare</h1>
    <div class="tools">
      <${Choice} name="a" label="From" ...${{ sides, value: one, choose }} />
      <${Choice} name="b" label="to" ...${{ sides, value: other, choose }} />
    </div>
    ${isPartOf(one, other) && html`<p class="notice">Choose two agents, or two runs.</p>`}
    <p>
      ${counted(tasks.length, "shared task")}, mean difference ${" "}
      <strong class=${sign(mean)}>${signed(mean)}</strong>; ${counted(flips.length, "leaf")} flipped.
    </p>
    <${Tests} ...${{ agents: data.agents.map((/** @type {any} */ agent) => agent.name), one, other }} />
    <div class="table-wrap" tabindex="0">
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">task</th>
            <th scope="col"><bdi>${one}</bdi></th>
            <th scope="col"><bdi>${other}</bdi></th>
            <th scope="col">difference</th>
            <th scope="col">leaves that flipped</th>
          </tr>
        </thead>
        <tbody>
          ${tasks.map(
            (task) =>
              html`<tr key=${task.name}>
                <th scope="row"><bdi>${task.name}</bdi></th>
                <td><${Score} score=${task.before} /></td>
                <td><${Score} score=${task.after} /></td>
                <td class=${sign(task.change)}>${signed(task.change)}</td>
                <td><${Flips} flips=${flips.filter((flip) => flip.task === task.name)} /></td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

/** @type {[string, string][]} */
const METRICS = [
  ["avg_score", "partial completion"],
  ["success_rate", "success rate"],
];

/**
 * @param {{agents: string[], one: string, other: string}} props
 */
function Tests({ agents, one, other }) {
  if (one === other) return null;
  if (![one, other].every((side) => agents.includes(side))) {
    return html`<p class="hint">Tests compare agents over all their runs: choose two agents.</p>`;
  }
  const [first, second] = agents.filter((name) => name === one || name === other);
  return html`<${PairTests} ...${{ first, second, one, other }} />`;
}

/**
 * Whether two agents differ by more than chance, as `mind2web2 compare` prints it of these two.
 * @param {{first: string, second: string, one: string, other: string}} props
 */
function PairTests({ first, second, one, other }) {
  const { data: tests, error } = useData("comparison", { first, second });
  if (!tests) return error && html`<p class="notice error" role="alert">${error}</p>`;
  if (tests.reason) return html`<p class="hint">No test: ${tests.reason}.</p>`;
  const pairs = METRICS.map(([name, label]) => ({ ...pairOf(tests.metrics[name], one, other), label, tied: tests.metrics[name].tied_with_best }));
  const { detectable } = pairs[0];
  return html`
    <div class="table-wrap" tabindex="0">
      <table class="tests">
        <thead>
          <tr>
            <th scope="col">metric</th>
            <th scope="col"><bdi>${one}</bdi></th>
            <th scope="col"><bdi>${other}</bdi></th>
            <th scope="col">difference</th>
            <th scope="col">95% interval</th>
            <th scope="col">p</th>
            <th scope="col">tied with the best</th>
          </tr>
        </thead>
        <tbody>
          ${pairs.map(
            (pair) =>
              html`<tr>
                <th scope="row">${pair.label}</th>
                <td>${number(pair.first)}</td>
                <td>${number(pair.second)}</td>
                <td>${signed(pair.difference)}</td>
                <td>${pair.low === null ? pair.reason : `${signed(pair.low)} to ${signed(pair.high)}`}</td>
                <td>${pair.p_value === null ? "–" : Number(pair.p_value.toPrecision(2))}</td>
                <td><bdi>${pair.tied.join(", ")}</bdi></td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="hint">
      Over ${counted(tests.num_tasks, "task")} that both agents share. If you compare several pairs, some look different by chance: <code>${program} compare</code> with all agents corrects for that.
      ${detectable && ` With these tasks, only a difference of ${number(detectable)} or more in partial completion would show (80% power).`}
    </p>
    ${tests.warnings.map((/** @type {string} */ text) => html`<p class="notice">${text}</p>`)}
    ${tests.why ? html`<${Why} why=${tests.why} />` : html`<p class="hint">What moved the score: <code>${program} compare ${one} ${other} --why</code>, then load this page again.</p>`}
  `;
}

/**
 * What moved the score, as `mind2web2 compare --why` prints it.
 * @param {{why: any}} props
 */
function Why({ why }) {
  /** @type {Record<string, string>} */
  const names = Object.fromEntries(why.shares.map((/** @type {any} */ share) => [share.cause, share.name]));
  return html`
    <h2>What moved the score</h2>
    <p>${why.sentence}</p>
    <div class="table-wrap" tabindex="0">
      <table class="tests why">
        <thead>
          <tr>
            <th scope="col">cause</th>
            <th scope="col">share</th>
            <th scope="col">95% interval</th>
            <th scope="col">answers</th>
          </tr>
        </thead>
        <tbody>
          ${why.shares.map(
            (/** @type {any} */ share) =>
              html`<tr>
                <th scope="row">${share.name}</th>
                <td>${share.share === null ? `${signed(share.least)} to ${signed(share.most)}` : signed(share.share)}</td>
                <td>${share.low === null ? "–" : `${signed(share.low)} to ${signed(share.high)}`}</td>
                <td>${share.answers}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${why.missing > 0 && html`<p class="notice">Missing: ${why.is_least ? "at least" : "about"} ${counted(why.missing, "stored judgment")}. The shares are within the bounds above. <code>${program} compare ${why.first} ${why.second} --why --ask</code> asks for them.</p>`}
    ${why.rehearsals.length > 0 && html`<p>Rehearsals of the changed scripts: <code>${why.rehearsals.join(", ")}</code></p>`}
    ${
      why.leaves.length > 0 &&
      html`<ul class="flips movers">
        ${why.leaves.map(
          (/** @type {any} */ leaf) =>
            html`<li>
              <strong class=${sign(leaf.effect)}>${signed(leaf.effect)}</strong> <bdi>${leaf.task}</bdi>, <bdi>${leaf.answer}</bdi>
              <span class="cause">${names[leaf.cause] ?? "a mixture"}</span>
              ${[
                [why.first, leaf.first],
                [why.second, leaf.second],
              ].map(([agent, side]) => html`<${MovedSide} ...${{ agent, leaf, side }} />`)}
            </li>`,
        )}
      </ul>`
    }
  `;
}

/** @param {{agent: string, leaf: any, side: any}} props */
function MovedSide({ agent, leaf, side }) {
  const status = side.passed === null ? "not judged" : side.passed ? "passed" : "failed";
  const place = [agent, leaf.task, leaf.answer, side.path.split("/").at(-1)];
  return html`<span class="text"
    ><a href=${address("evidence", place)}><span class=${`dot ${status}`}></span> ${status}</a> <bdi class="where">${agent}:</bdi> ${side.claim}
    <span class="where">${side.judge} ${side.pages.join(" ")}</span></span
  >`;
}

/** @param {any} metric @param {string} one @param {string} other */
function pairOf(metric, one, other) {
  /** @param {string} first @param {string} second */
  const find = (first, second) => metric.differences.find((/** @type {any} */ pair) => pair.first_agent === first && pair.second_agent === second);
  const found = find(one, other);
  if (found) return found;
  const pair = find(other, one);
  /** @param {number | null} value */
  const opposite = (value) => (value === null ? null : -value);
  return { ...pair, first: pair.second, second: pair.first, difference: opposite(pair.difference), low: opposite(pair.high), high: opposite(pair.low) };
}

/** @param {any} props */
function Choice({ name, label, sides, value, choose }) {
  return html`<label
    >${label}
    <select onChange=${(/** @type {any} */ event) => choose(name, event.target.value)}>
      ${sides.map((/** @type {string} */ side) => html`<option value=${side} selected=${side === value}>${side}</option>`)}
    </select>
  </label>`;
}

/** @param {{flips: any[]}} props */
function Flips({ flips }) {
  if (!flips.length) return html`<span class="where">none</span>`;
  return html`<details>
    <summary>${flips.length}</summary>
    <ul class="flips">
      ${flips.map(
        (flip) =>
          html`<li>
            <a href=${address("evidence", flip.before.place)}><span class=${`dot ${flip.before.status}`}></span> ${flip.before.status}</a>
            ${" → "}
            <a href=${address("evidence", flip.after.place)}><span class=${`dot ${flip.after.status}`}></span> ${flip.after.status}</a>
            <span class="where"> <bdi>${answersOf(flip)}</bdi></span>
            ${[flip.before, flip.after].map((side) => html`<${LeafDoubts} doubts=${side.doubts} of=${side.place[0]} />`)}
            ${
              flip.before.text === flip.after.text
                ? html`<span class="text">${flip.after.text}</span>`
                : [flip.before, flip.after].map(
                    (side) => html`<span class="text"><bdi class="where">${side.place[0]}, ${side.place[2]}:</bdi> ${side.text}</span>`,
                  )
            }
          </li>`,
      )}
    </ul>
  </details>`;
}

/** @param {any} data */
function sidesOf(data) {
  const runs = new Set(data.answers.map((/** @type {any} */ row) => `${row.agent} / ${row.answer}`));
  const withAnswers = new Set(data.answers.map((/** @type {any} */ row) => row.agent));
  return [...data.agents.map((/** @type {any} */ agent) => agent.name).filter((/** @type {string} */ name) => withAnswers.has(name)), ...runs];
}

/** Whether two sides are the same, or one is a run of the other.
 * @param {string} one @param {string} other */
function isPartOf(one, other) {
  return one === other || one.startsWith(`${other} / `) || other.startsWith(`${one} / `);
}

/** @param {string} side @param {string} agent @param {string} answer */
function isOn(side, agent, answer) {
  return side === agent || side === `${agent} / ${answer}`;
}

/** @param {any} data @param {string} one @param {string} other */
function differences(data, one, other) {
  const means = [one, other].map((side) => {
    const scores = new Map();
    for (const row of data.answers) {
      if (row.score === null || !isOn(side, row.agent, row.answer)) continue;
      scores.set(row.task, [...(scores.get(row.task) || []), row.score]);
    }
    return new Map([...scores].map(([task, found]) => [task, found.reduce((/** @type {number} */ sum, /** @type {number} */ score) => sum + score, 0) / found.length]));
  });
  return [...means[0]]
    .filter(([task]) => means[1].has(task))
    .map(([name, before]) => ({ name, before, after: means[1].get(name), change: (means[1].get(name) ?? 0) - before }))
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || (a.name < b.name ? -1 : 1));
}

/**
 * The leaves of one name that came out differently: runs of two agents are taken in pairs by their names.
 * @param {any[]} claims @param {string} one @param {string} other
 */
function flipped(claims, one, other) {
  const isRun = one.includes(" / ") && other.includes(" / ");
  const before = new Map();
  const found = [];
  /** @param {any[]} row */
  const key = ([, task, answer, leaf]) => JSON.stringify([task, isRun ? "" : answer, leaf]);
  for (const row of claims) if (row[3] && isOn(one, row[0], row[2])) before.set(key(row), row);
  for (const row of claims) {
    const earlier = isOn(other, row[0], row[2]) ? before.get(key(row)) : undefined;
    if (!earlier || earlier === row || (earlier[4] === "passed") === (row[4] === "passed")) continue;
    // The gate that failed stands for what it skips.
    if (earlier[4] !== "skipped" && row[4] !== "skipped") found.push({ task: row[1], before: side(earlier), after: side(row) });
  }
  return found;
}

/** @param {any[]} row */
function side([agent, task, answer, leaf, status, text, doubts]) {
  return { place: [agent, task, answer, leaf], status, text, doubts };
}

/**
 * The answers of a flip: one name where both have it.
 * @param {any} flip
 */
function answersOf({ before, after }) {
  return before.place[2] === after.place[2] ? after.place[2] : `${before.place[2]} → ${after.place[2]}`;
}

/** @param {number | null} value */
function signed(value) {
  return value === null ? "–" : `${value > 0 ? "+" : ""}${number(value)}`.replace("-", "−");
}

/** @param {number | null} value */
function sign(value) {
  return !value ? "" : value > 0 ? "better" : "worse";
}

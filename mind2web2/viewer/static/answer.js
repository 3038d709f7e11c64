// One answer: its rubric tree, and beside it the answer itself and how the result was made.

import { useEffect, useMemo, useState } from "preact/hooks";
import { html, address, counted, KeyHelp, number, Score, Status, useData, useKeys, Waiting } from "viewer/parts";
import { LeafDoubts } from "viewer/doubts";
import { Markdown } from "viewer/markdown";
import { Provenance } from "viewer/provenance";

const OUTCOMES = { supported: "supports it", not_supported: "does not support it", unavailable: "unavailable" };

/** @param {{steps: string[], options: Record<string, string>}} props */
export function Answer({ steps, options }) {
  const [agent, task, answer] = steps;
  const { data, error } = useData("answer", { agent, task, answer });
  const [closed, setClosed] = useState(() => new Set());
  const [beside, setBeside] = useState("text");
  const rows = useMemo(() => (data ? data.trees.flat() : []), [data]);
  const shown = useMemo(() => visible(rows, closed), [rows, closed]);
  const leaves = shown.filter((row) => row.is_leaf);
  const current = options.leaf || "";
  /** @param {any} row */
  const select = (row) => row && location.replace(address("answer", steps, { leaf: row.id }));
  const at = leaves.findIndex((row) => row.id === current);
  useKeys({
    j: () => select(leaves[at + 1]),
    k: () => select(at > 0 ? leaves[at - 1] : undefined),
    n: () => select(leaves.slice(at + 1).find((/** @type {any} */ row) => row.status !== "passed")),
    Enter: () => current && (location.hash = address("evidence", [...steps, current])),
  });
  useEffect(() => {
    document.getElementById(`leaf-${current}`)?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }, [current, data]);
  if (!data) return html`<${Waiting} error=${error} />`;
  /** @param {any} row */
  const toggle = (row) => {
    const next = new Set(closed);
    if (!next.delete(row.id)) next.add(row.id);
    setClosed(next);
  };
  const counts = ["passed", "failed", "skipped"].map(
    (status) => `${rows.filter((/** @type {any} */ row) => row.is_leaf && row.status === status).length} ${status}`,
  );
  const undecided = rows.filter((/** @type {any} */ row) => row.is_leaf && row.status === "initialized").length;
  if (undecided) counts.push(`${undecided} never judged`);
  return html`
    <p class="path"><a href="#/overview">Overview</a> / <bdi>${agent}</bdi> / <bdi>${task}</bdi></p>
    <h1><bdi>${answer}</bdi> <${Score} score=${data.score} /></h1>
    ${data.reason && html`<p class="notice error">${data.score === null ? "No score" : `Score ${number(data.score)}`}: ${data.reason}</p>`}
    ${
      data.facts.doubts?.length > 0 &&
      html`<p class="notice">In doubt, the next run judges it again: ${data.facts.doubts.join("; ")}</p>`
    }
    ${data.facts.script_faults?.map((/** @type {string} */ fault) => html`<p class="notice">Mistake of the script: ${fault}</p>`)}
    <div class="columns">
      <section aria-label="Rubric tree">
        <p class="hint">${counted(rows.length, "node")}; leaves: ${counts.join(", ")}. ◆ marks a critical node: a gate, left out of the mean; if it scores below 1, its parent is 0.</p>
        <${KeyHelp} keys=${[["j", "next leaf"], ["k", "previous"], ["n", "next failure"], ["Enter", "evidence"]]} />
        ${!rows.length && !data.reason && html`<p class="notice">The script gave this score without a rubric tree.</p>`}
        <ul class="tree">
          ${shown.map((row) => html`<${Row} key=${row.id} ...${{ row, closed, toggle, steps, current }} />`)}
        </ul>
      </section>
      <section aria-label="Answer and result" class="beside">
        <div class="tabs" role="tablist">
          ${[
            ["text", "Answer"],
            ["task", "Task"],
            ["provenance", "How it was judged"],
          ].map(
            ([name, title]) =>
              html`<button role="tab" aria-selected=${beside === name} onClick=${() => setBeside(name)}>${title}</button>`,
          )}
        </div>
        ${
          beside === "provenance"
            ? html`<${Provenance} answer=${data} />`
            : beside === "task"
              ? html`<p class="pre">${data.trees[0]?.[0]?.desc || "The result does not hold the text of the task."}</p>`
              : data.has_text
              ? html`<${Markdown} tree=${data.markdown} />`
              : html`<p class="notice">The text of this answer was not kept.</p>`
        }
      </section>
    </div>
  `;
}

/** @param {any[]} rows @param {Set<string>} closed */
function visible(rows, closed) {
  const shown = [];
  let hiddenBelow = Infinity;
  for (const row of rows) {
    if (row.depth > hiddenBelow) continue;
    hiddenBelow = !row.is_leaf && closed.has(row.id) ? row.depth : Infinity;
    shown.push(row);
  }
  return shown;
}

/** @param {any} props */
function Row({ row, closed, toggle, steps, current }) {
  const indent = Math.min(row.depth, 12);
  const isClosed = closed.has(row.id);
  const isCurrent = row.is_leaf && row.id === current;
  const title = html`<span class="title"
    ><span class="desc">${row.desc.trim() || row.id}</span> <code><bdi>${row.id}</bdi></code>
    ${row.critical && html` <span class="critical" title="critical: if it scores below 1, its parent is 0">◆ critical</span>`}
    ${row.strategy === "sequential" && !row.is_leaf && html` <span class="kind">sequential</span>`}
    <${LeafDoubts} doubts=${row.doubts} />
  </span>`;
  return html`<li
    id=${row.is_leaf ? `leaf-${row.id}` : undefined}
    class=${`node ${row.status} ${isCurrent ? "current" : ""} ${row.critical ? "gate" : ""}`}
    style=${{ marginInlineStart: `${indent * 1.1}rem` }}
  >
    <div class="line">
      ${
        row.is_leaf
          ? html`<a class="leaf" href=${address("answer", steps, { leaf: row.id })}>${title}</a>`
          : html`<button class="fold" aria-expanded=${!isClosed} onClick=${() => toggle(row)}>
              <span aria-hidden="true">${isClosed ? "▸" : "▾"}</span> ${title}
            </button>`
      }
      <span class="verdict"><${Status} status=${row.status} /> <${Score} score=${row.score} /></span>
    </div>
    ${row.arithmetic && html`<p class="why">${row.arithmetic}</p>`}
    ${isCurrent && html`<${LeafDetails} row=${row} steps=${steps} />`}
    ${!isCurrent && row.status === "skipped" && row.evidence?.reason && html`<p class="why">${row.evidence.reason}</p>`}
  </li>`;
}

/** @param {any} props */
function LeafDetails({ row, steps }) {
  const evidence = row.evidence;
  if (!evidence) return html`<p class="why">The result keeps no evidence of this leaf.</p>`;
  return html`<div class="details">
    ${evidence.claim && html`<blockquote class="claim">${evidence.claim}</blockquote>`}
    ${evidence.reason && html`<p class="why">${evidence.reason}</p>`}
    ${
      evidence.pages?.length > 0 &&
      html`<ul class="sources">
        ${evidence.pages.map(
          (/** @type {any} */ check, /** @type {number} */ place) =>
            html`<li>
              <a href=${address("evidence", [...steps, row.id], { source: String(place) })}><bdi>${check.url}</bdi></a> ${" "}
              <span class=${`outcome ${check.outcome}`}>${OUTCOMES[/** @type {keyof OUTCOMES} */ (check.outcome)]}</span>
              ${check.reason && html`<span class="why">${check.reason}</span>`}
            </li>`,
        )}
      </ul>`
    }
    <p><a class="button" href=${address("evidence", [...steps, row.id])}>Evidence</a></p>
  </div>`;
}

// A claim beside the page as the judge saw it: quoted passage, picture, votes, the exact messages.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, address, counted, KeyHelp, moment, OutsideLink, Status, useData, useKeys, Waiting } from "viewer/parts";
import { isFile, load } from "viewer/source";
import { PageView } from "viewer/page";

/** @param {{steps: string[], options: Record<string, string>}} props */
export function Evidence({ steps, options }) {
  const [agent, task, answer, leaf] = steps;
  const { data, error } = useData("answer", { agent, task, answer });
  const leaves = useMemo(() => (data ? data.trees.flat().filter((/** @type {any} */ row) => row.is_leaf) : []), [data]);
  const at = leaves.findIndex((/** @type {any} */ row) => row.id === leaf);
  /** @param {any} row */
  const open = (row) => row && location.replace(address("evidence", [agent, task, answer, row.id]));
  useKeys({
    j: () => open(leaves[at + 1]),
    k: () => open(at > 0 ? leaves[at - 1] : undefined),
    n: () => open(leaves.slice(at + 1).find((/** @type {any} */ row) => row.status !== "passed")),
    Escape: () => (location.hash = address("answer", [agent, task, answer], { leaf })),
  });
  if (!data) return html`<${Waiting} error=${error} />`;
  const row = leaves[at];
  if (!row) {
    return html`<p class="notice error">
      This answer has no leaf ${leaf}. ${" "}<a href=${address("answer", [agent, task, answer])}>Its rubric tree</a>
    </p>`;
  }
  const evidence = row.evidence || {};
  const checks = evidence.pages || [];
  const decisive = checks.findIndex((/** @type {any} */ check) => check.outcome === "supported");
  const source = Math.min(Number(options.source ?? Math.max(0, decisive)) || 0, Math.max(0, checks.length - 1));
  const check = checks[source];
  const votes = (check || evidence).votes || [];
  const quote = votes.find((/** @type {any} */ vote) => vote.quote)?.quote;
  return html`
    <p class="path">
      <a href="#/overview">Overview</a> / <bdi>${agent}</bdi> / <bdi>${task}</bdi> / ${" "}
      <a href=${address("answer", [agent, task, answer], { leaf })}><bdi>${answer}</bdi></a>
    </p>
    <div class="columns evidence">
      <section aria-label="Claim and votes">
        <h1>${row.desc.trim() || row.id}</h1>
        <p>
          <${Status} status=${row.status} /> <code><bdi>${row.id}</bdi></code> ${" "}
          ${row.critical && html`<span class="critical">◆ critical</span> `}
          <span class="where">leaf ${at + 1} of ${leaves.length}</span>
        </p>
        <${KeyHelp} keys=${[["j", "next leaf"], ["k", "previous"], ["n", "next failure"], ["Esc", "tree"]]} />
        ${evidence.claim && html`<h2>Claim</h2><blockquote class="claim">${evidence.claim}</blockquote>`}
        ${evidence.additional_instruction && html`<details><summary>The script's instruction to the judge</summary><p class="pre">${evidence.additional_instruction}</p></details>`}
        ${evidence.reason && html`<p class="notice">${evidence.reason}</p>`}
        ${!row.evidence && html`<p class="notice">The result keeps no evidence of this leaf.</p>`}
        ${checks.length > 0 && html`<${Sources} ...${{ checks, source, steps }} />`}
        <${Votes} ...${{ votes, check, steps, evidence }} />
      </section>
      <section aria-label="Page" class="beside">
        ${
          check
            ? html`<${CheckedPage} key=${check.url} ...${{ agent, task, check, quote }} />`
            : html`<p class="notice">
                ${evidence.claim ? "This claim was judged from the answer alone." : "No page belongs to this leaf."}
              </p>`
        }
      </section>
    </div>
  `;
}

/** @param {any} props */
function Sources({ checks, source, steps }) {
  return html`<h2>Sources</h2>
    <ol class="sources">
      ${checks.map(
        (/** @type {any} */ check, /** @type {number} */ place) =>
          html`<li>
            <a
              href=${address("evidence", steps, { source: String(place) })}
              aria-current=${place === source ? "true" : undefined}
              ><bdi>${check.url}</bdi></a
            > ${" "}
            <span class=${`outcome ${check.outcome}`}>${check.outcome.replace("_", " ")}</span>
            ${check.reason && html`<span class="why">${check.reason}</span>`}
          </li>`,
      )}
    </ol>`;
}

/** @param {any} props */
function Votes({ votes, check, steps, evidence }) {
  if (!votes.length) return null;
  return html`<h2>Votes${evidence.num_trials > 1 ? ` (of ${evidence.num_trials} at most)` : ""}</h2>
    <ol class="votes">
      ${votes.map(
        (/** @type {any} */ vote) =>
          html`<li class=${vote.supported ? "yes" : "no"}>
            <p class="vote">
              <strong>${vote.declined ? "declined" : vote.supported ? "supported" : "not supported"}</strong>
              <span class="where">trial ${vote.trial}</span>
            </p>
            <p class="pre">${vote.declined || vote.reasoning}</p>
            ${vote.quote && html`<${Quote} quote=${vote.quote} />`}
            ${vote.judgment && html`<${Messages} ...${{ judgment: vote.judgment, steps, check }} />`}
          </li>`,
      )}
    </ol>`;
}

const QUOTES = {
  found: "found in the text",
  approximate: "nearly found in the text",
  not_found: "not found in the text",
};

/** Words that the judge quotes, and whether the page has them. @param {{quote: {text: string, match: keyof QUOTES}}} props */
export function Quote({ quote }) {
  return html`<p class=${`quote ${quote.match}`}><q>${quote.text}</q> <span class="where">${QUOTES[quote.match]}</span></p>`;
}

/** @param {any} props */
function Messages({ judgment, steps }) {
  const [state, setState] = useState(/** @type {any} */ (null));
  if (isFile) return null;
  const [agent, task, answer] = steps;
  const show = () =>
    load("messages", { agent, task, answer, judgment }).then(
      (data) => setState({ data }),
      (error) => setState({ error: String(error.message || error) }),
    );
  return html`<details class="messages" onToggle=${(/** @type {any} */ event) => event.target.open && !state && show()}>
    <summary>Messages that the judge got</summary>
    ${
      !state
        ? html`<${Waiting} error=${null} />`
        : state.error
          ? html`<p class="notice error">${state.error}</p>`
          : html`<p class=${state.data.is_exact ? "hint" : "notice"}>
                ${
                  state.data.is_exact
                    ? "Exactly these messages: their hash is the key of the stored judgment."
                    : "Rebuilt from the files of now. They are not quite those of the judgment: the page, the judge's limits or the version have changed since."
                }
              </p>
              ${state.data.messages.map(
                (/** @type {any} */ message) =>
                  html`<h3>${message.role}</h3>
                    ${message.parts.map((/** @type {any} */ part) =>
                      part.text === undefined
                        ? html`<p class="where">[image, ${Math.round(part.image_bytes / 1024)} KB]</p>`
                        : html`<pre class="raw" tabindex="0">${part.text}</pre>`,
                    )}`,
              )}`
    }
  </details>`;
}

/** @param {any} props */
export function CheckedPage({ agent, task, check, quote }) {
  const { data, error } = useData("page", { agent, task, url: check.url });
  const judged = check.page;
  return html`
    <h2 class="page-title"><${OutsideLink} href=${check.url}><bdi>${check.url}</bdi><//></h2>
    ${
      check.outcome === "unavailable"
        ? html`<p class="notice error">Unavailable when it was judged: ${check.reason}</p>`
        : null
    }
    ${
      data && judged?.sha256 && data.sha256 && data.sha256 !== judged.sha256
        ? html`<p class="notice error">The stored page has changed since it was judged: what follows is not what the judge saw.</p>`
        : null
    }
    ${judged && html`<${Shown} page=${judged} />`}
    ${data ? html`<${PageView} page=${data} quote=${quote?.source === "page" ? quote : null} />` : html`<${Waiting} error=${error} />`}
  `;
}

/** @param {{page: any}} props */
function Shown({ page }) {
  const facts = [
    page.captured_at && `captured ${moment(page.captured_at)}`,
    page.captured_by && `by browser ${page.captured_by}`,
    `${page.text_chars} of ${page.text_chars_stored} characters and ${counted(page.images, "image")} shown`,
  ].filter(Boolean);
  return html`<p class="hint">${facts.join(", ")}</p>
    ${[...(page.notes || []), ...(page.flags || []).map((/** @type {any} */ flag) => `${flag.kind}: ${flag.excerpt}`)].map(
      (note) => html`<p class="notice warn">${note}</p>`,
    )}`;
}

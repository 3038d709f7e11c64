// The human audit: claim and page, without the judge's verdict until a label is given.

import { useEffect, useRef, useState } from "preact/hooks";
import { html, counted, KeyHelp, OutsideLink, useData, useKeys, Waiting } from "viewer/parts";
import { forget, program, send } from "viewer/source";
import { Markdown } from "viewer/markdown";
import { PageView } from "viewer/page";

const LABELS = { y: "supported", n: "not supported", u: "undecidable" };

export function Audit() {
  const { data, error } = useData("audit", {});
  // The labels given since the state was loaded, by the number of the leaf.
  const [added, setAdded] = useState(/** @type {Record<number, string>} */ ({}));
  const [total, setTotal] = useState(0);
  const [chosen, setChosen] = useState(/** @type {number | null} */ (null));
  if (!data) return html`<${Waiting} error=${error} />`;
  // Leaves behind a gate that the auditor passes come to the sample.
  const known = [...data.labels, ...Array(Math.max(0, total - data.labels.length)).fill(null)];
  const labels = known.map((/** @type {string | null} */ label, /** @type {number} */ number) => added[number] || label);
  const done = labels.filter(Boolean).length;
  const at = chosen ?? Math.max(0, data.labels.indexOf(null));
  /** @param {string} label @param {number} leaves */
  const labelled = (label, leaves) => {
    setTotal(leaves);
    forget();
    setChosen(at);
    setAdded({ ...added, [at]: label });
  };
  return html`
    <h1>Audit of <bdi>${data.agent}</bdi>${data.is_second ? ": disagreements" : ""}</h1>
    <p class="hint progress" role="status">
      ${done} of ${counted(labels.length, "leaf")} labelled by ${data.auditor}
      <progress max=${labels.length} value=${done} aria-label="leaves labelled"></progress>
    </p>
    ${
      done === labels.length &&
      html`<p class="notice">All leaves have a label. The figures: <code>${program} audit ${data.agent}</code></p>`
    }
    <${Leaf} key=${at} number=${at} given=${known[at]} own=${labels[at]} labelled=${labelled} go=${setChosen} last=${labels.length - 1} />
  `;
}

/** @param {any} props */
function Leaf({ number, given, own, labelled, go, last }) {
  const { data, error } = useData("audit-item", { number: String(number) });
  const [note, setNote] = useState("");
  const [verdict, setVerdict] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [isSeen, setSeen] = useState(false);
  const since = useRef(Date.now());
  useEffect(() => {
    since.current = Date.now();
    if (data && !data.pages.length) setSeen(true);
  }, [data, isSeen]);
  /** @param {string} label */
  const give = (label) => {
    if (verdict || !isSeen) return;
    send("/api/audit-label", { number, label, note, seconds: (Date.now() - since.current) / 1000 }).then(
      (found) => {
        setVerdict({ ...found, label });
        setProblem("");
        labelled(label, found.leaves);
      },
      (failure) => setProblem(String(failure.message || failure)),
    );
  };
  const forward = () => number < last && go(number + 1);
  useKeys({
    y: () => give("y"),
    n: () => (verdict ? forward() : give("n")),
    u: () => give("u"),
    Enter: forward,
    j: forward,
    k: () => number > 0 && go(number - 1),
  });
  if (!data) return html`<${Waiting} error=${error} />`;
  const chosenLabel = verdict ? verdict.label : own;
  return html`
    <div class="columns evidence">
      <section aria-label="Claim">
        <p class="where">leaf ${number + 1} of ${last + 1}${given ? `, labelled before: ${LABELS[/** @type {keyof LABELS} */ (given)]}` : ""}</p>
        <h2>Claim</h2>
        <blockquote class="claim">${data.claim}</blockquote>
        ${data.instruction && html`<p class="hint pre">${data.instruction}</p>`}
        ${data.is_skipped && html`<p class="hint">The judge was not asked: it failed a claim before this one, which you support.</p>`}
        <p>${data.pages.length ? "Do the pages support this claim? One that supports it is enough." : "Is this claim correct?"}</p>
        <p class="labels">
          ${Object.entries(LABELS).map(
            ([key, name]) =>
              html`<button aria-pressed=${key === chosenLabel} disabled=${Boolean(verdict) || !isSeen} onClick=${() => give(key)}><kbd>${key}</kbd> ${name}</button> `,
          )}
        </p>
        <label>Note<textarea rows="2" maxlength="2000" value=${note} onInput=${(/** @type {any} */ event) => setNote(event.target.value)}></textarea></label>
        ${data.blind && html`<p class="hint">Your blind label: ${LABELS[/** @type {keyof LABELS} */ (data.blind.label)]}. ${data.blind.note}</p>`}
        ${data.judge && !verdict && html`<${Verdict} verdict=${{ ...data.judge, label: data.blind.label }} />`}
        ${problem && html`<p class="notice error" role="alert">${problem}</p>`}
        ${verdict && html`<${Verdict} verdict=${verdict} />`}
        <p>
          <button onClick=${() => go(number - 1)} disabled=${number === 0}>Previous</button> ${" "}
          <button onClick=${forward} disabled=${number === last}>Next</button>
        </p>
        <${KeyHelp} keys=${[["Enter", "next"], ["k", "previous"]]} />
        <details><summary>The task</summary><p class="pre">${data.task_text}</p></details>
      </section>
      <section aria-label="Page" class="beside">
        ${data.pages.length ? html`<${Pages} item=${data} seen=${() => setSeen(true)} />` : html`<${Markdown} tree=${data.markdown} />`}
      </section>
    </div>
  `;
}

/** @param {{verdict: any}} props */
function Verdict({ verdict }) {
  if (verdict.is_skipped) return html`<p class="notice revealed" role="status">The judge skipped this claim.</p>`;
  const agrees = verdict.label !== "u" && verdict.supported === (verdict.label === "y");
  const votes = [
    ...(verdict.evidence.votes || []),
    ...(verdict.evidence.pages || []).flatMap((/** @type {any} */ check) => check.votes || []),
  ];
  return html`<div class="revealed" role="status">
    <p class=${`notice ${verdict.label === "u" ? "" : agrees ? "agree" : "error"}`}>
      The judge decided: <strong>${verdict.supported ? "supported" : "not supported"}</strong>.
      ${verdict.label === "u" ? "" : agrees ? " You agree." : " You disagree."}
    </p>
    ${votes.map(
      (vote) => html`<p class="why">${vote.supported ? "✓" : "✗"} ${vote.declined || vote.reasoning}</p>
        ${vote.quote && html`<blockquote>${vote.quote.text}</blockquote>`}`,
    )}
  </div>`;
}

/** @param {{item: any, seen: () => void}} props the latter is called once a page is there */
function Pages({ item, seen }) {
  const [at, setAt] = useState(0);
  const { url, sha256 } = item.pages[at];
  const { data, error } = useData("page", { agent: item.agent, task: item.task, url });
  useEffect(() => {
    if (data || error) seen();
  }, [data, error]);
  return html`
    ${
      item.pages.length > 1 &&
      html`<p>
        ${item.pages.map(
          (/** @type {any} */ _, /** @type {number} */ place) =>
            html`<button aria-pressed=${place === at} onClick=${() => setAt(place)}>Page ${place + 1}</button> `,
        )}
      </p>`
    }
    <h2 class="page-title"><${OutsideLink} href=${url}><bdi>${url}</bdi><//></h2>
    ${
      data && sha256 && data.sha256 && data.sha256 !== sha256
        ? html`<p class="notice error">
            The stored page has changed since the judge saw it: label this leaf as undecidable, or evaluate the answer again first.
          </p>`
        : null
    }
    ${data ? html`<${PageView} key=${url} page=${data} quote=${null} />` : html`<${Waiting} error=${error} />`}
  `;
}

// The human audit: whole answers, a claim and its page at a time, without the judge's verdicts.

import { useEffect, useRef, useState } from "preact/hooks";
import { html, counted, KeyHelp, OutsideLink, useData, useKeys, Waiting } from "viewer/parts";
import { forget, program, send } from "viewer/source";
import { Markdown } from "viewer/markdown";
import { PageView } from "viewer/page";

/** @type {Record<string, string>} */
const LABELS = { y: "supported", n: "not supported", u: "undecidable" };

export function Audit() {
  const { data, error } = useData("audit", {});
  // The state after the last label, which may have more leaves, or fewer.
  const [changed, setChanged] = useState(/** @type {any} */ (null));
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const state = changed || data;
  if (!state) return html`<${Waiting} error=${error} />`;
  const names = state.leaves.map((/** @type {any} */ each) => each.leaf.join("/"));
  const open = state.leaves.findIndex((/** @type {any} */ each) => !each.label);
  const at = Math.max(0, chosen === null ? (open < 0 ? names.length - 1 : open) : names.indexOf(chosen));
  const done = state.leaves.filter((/** @type {any} */ each) => each.label).length;
  /** @param {any} found */
  const labelled = (found) => {
    forget();
    setChosen(names[at]);
    setChanged(found);
  };
  /** @param {number} step */
  const go = (step) => names[at + step] && setChosen(names[at + step]);
  return html`
    <h1>Audit of <bdi>${state.agent}</bdi></h1>
    <p class="hint progress" role="status">
      ${state.whole} of ${counted(state.answers, "answer")} labelled as a whole, ${done} of ${counted(names.length, "leaf")} labelled by ${state.auditor}
      <progress max=${names.length} value=${done} aria-label="leaves labelled"></progress>
    </p>
    ${
      state.whole > 0 &&
      html`<p class="notice">You may stop after any whole answer. The figures: <code>${program} metrics ${state.agent} --audit</code></p>`
    }
    <${Leaf} key=${names[at]} leaf=${state.leaves[at]} place=${`leaf ${at + 1} of ${names.length}`} labelled=${labelled} go=${go} isFirst=${at === 0} isLast=${at === names.length - 1} />
  `;
}

/** @param {any} props */
function Leaf({ leaf, place, labelled, go, isFirst, isLast }) {
  const [task, answer, name] = leaf.leaf;
  const { data, error } = useData("audit-item", { task, answer, leaf: name });
  const [note, setNote] = useState("");
  const [problem, setProblem] = useState("");
  const [isSeen, setSeen] = useState(false);
  const isSending = useRef(false);
  const since = useRef(Date.now());
  useEffect(() => {
    since.current = Date.now();
    if (data && !data.pages.length) setSeen(true);
  }, [data, isSeen]);
  /** @param {string | null} label null takes the label back */
  const give = (label) => {
    if (isSending.current || !isSeen || Boolean(leaf.label) === Boolean(label)) return;
    isSending.current = true;
    send("/api/audit-label", { leaf: leaf.leaf, label, note, seconds: (Date.now() - since.current) / 1000 })
      .then(
        (found) => {
          since.current = Date.now();
          setProblem("");
          labelled(found);
        },
        (failure) => setProblem(String(failure.message || failure)),
      )
      .finally(() => {
        isSending.current = false;
      });
  };
  useKeys({
    y: () => give("y"),
    n: () => give("n"),
    u: () => give("u"),
    z: () => give(null),
    Enter: () => go(1),
    j: () => go(1),
    k: () => go(-1),
  });
  if (!data) return html`<${Waiting} error=${error} />`;
  return html`
    <div class="columns evidence">
      <section aria-label="Claim">
        <p class="where">${place}</p>
        <h2>Claim</h2>
        <blockquote class="claim">${data.claim}</blockquote>
        ${data.instruction && html`<p class="hint pre">${data.instruction}</p>`}
        <p>${data.pages.length ? "Do the pages support this claim? One that supports it is enough." : "Is this claim correct?"}</p>
        <p class="labels">
          ${Object.entries(LABELS).map(
            ([key, name]) =>
              html`<button aria-pressed=${key === leaf.label} disabled=${Boolean(leaf.label) || !isSeen} onClick=${() => give(key)}><kbd>${key}</kbd> ${name}</button> `,
          )}
          <button disabled=${!leaf.label || !isSeen} onClick=${() => give(null)}><kbd>z</kbd> take back</button>
        </p>
        <label>Note<textarea rows="2" maxlength="2000" value=${note} onInput=${(/** @type {any} */ event) => setNote(event.target.value)}></textarea></label>
        ${problem && html`<p class="notice error" role="alert">${problem}</p>`}
        <p>
          <button onClick=${() => go(-1)} disabled=${isFirst}>Previous</button> ${" "}
          <button onClick=${() => go(1)} disabled=${isLast}>Next</button>
        </p>
        <${KeyHelp} keys=${[["Enter", "next"], ["k", "previous"], ["z", "take the label back"]]} />
        <details><summary>The task</summary><p class="pre">${data.task_text}</p></details>
      </section>
      <section aria-label="Page" class="beside">
        ${data.pages.length ? html`<${Pages} item=${data} seen=${() => setSeen(true)} />` : html`<${Markdown} tree=${data.markdown} />`}
      </section>
    </div>
  `;
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

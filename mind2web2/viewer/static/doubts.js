// Doubts about the judges' verdicts that need no labels: verdicts that stayed on changed pages.

import { html, address, counted, OutsideLink, useData, Waiting } from "viewer/parts";

export function Doubts() {
  const { data, error } = useData("doubts", {});
  if (!data) return html`<${Waiting} error=${error} />`;
  const stayed = data.agents.flatMap((/** @type {any} */ agent) => agent.stayed);
  const lines = data.agents.flatMap((/** @type {any} */ agent) => agent.lines);
  return html`
    <h1>Doubts</h1>
    <p class="hint">Signs that a verdict may be wrong. None of them needs a label, and none changes a score.</p>
    ${lines.map((/** @type {string} */ line) => html`<p class="notice">${line}</p>`)}
    <h2>Not read from the page</h2>
    <p>
      ${
        lines.length || stayed.length
          ? `${counted(stayed.length, "verdict")} stayed after the fact on the page was changed.`
          : "No judge has been asked about changed pages yet."
      }
    </p>
    ${stayed.map((/** @type {any} */ each) => html`<${Stayed} stayed=${each} />`)}
  `;
}

/** @param {{stayed: any}} props */
function Stayed({ stayed }) {
  return html`<article class="stayed">
    <blockquote class="claim">${stayed.claim}</blockquote>
    <p>
      <a href=${address("evidence", [stayed.agent, stayed.task, stayed.answer, stayed.leaf])}><bdi>${stayed.agent}/${stayed.task}/${stayed.answer}/${stayed.leaf}</bdi></a>
      <span class="where"> ${stayed.judge}, change of ${stayed.kind}, on ${" "}<${OutsideLink} href=${stayed.url}><bdi>${stayed.url}</bdi><//></span>
    </p>
    <div class="sides">
      <${Side} title="The page as it was" page=${stayed.page_before} reason=${stayed.reason_before} />
      <${Side} title="The page as it was changed" page=${stayed.page_after} reason=${stayed.reason_after} />
    </div>
  </article>`;
}

/** @param {{title: string, page: any, reason: string}} props */
function Side({ title, page, reason }) {
  return html`<div>
    <h3>${title}</h3>
    ${page && html`<blockquote>…${page.before}<mark>${page.changed || "(removed)"}</mark>${page.after}…</blockquote>`}
    <p class="why">The judge: ${reason}</p>
  </div>`;
}

/** @param {{doubts?: string[], of?: string}} props */
export function LeafDoubts({ doubts, of }) {
  return doubts?.map((doubt) => html` <span class="doubt">${of ? `${of}: ` : ""}${doubt}</span>`) ?? null;
}

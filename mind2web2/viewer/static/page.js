// A stored page: its text with a quoted passage marked, its pictures, and the record of its capture.

import { useEffect, useRef, useState } from "preact/hooks";
import { html, moment } from "viewer/parts";
import { imageAddress } from "viewer/source";

/** @param {{page: any, quote: any}} props */
export function PageView({ page, quote }) {
  const [tab, setTab] = useState("text");
  const tabs = [
    ["text", "Text"],
    ["images", page.kind === "pdf" ? "Pages" : "Screenshot"],
    ["record", "Capture"],
  ];
  return html`
    <div class="tabs" role="tablist">
      ${tabs.map(
        ([name, title]) =>
          html`<button role="tab" aria-selected=${tab === name} onClick=${() => setTab(name)}>${title}</button>`,
      )}
    </div>
    ${page.unavailable && html`<p class="notice error">Not stored: ${page.unavailable}</p>`}
    ${tab === "text" && !page.unavailable && html`<${PageText} text=${page.text} quote=${quote} />`}
    ${tab === "images" && html`<${Images} page=${page} />`}
    ${tab === "record" && html`<${Record} page=${page} />`}
  `;
}

/** @param {{text: string, quote: any}} props */
function PageText({ text, quote }) {
  const mark = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // Only the text moves: the claim and the verdict stay in sight.
    const pane = mark.current?.parentElement;
    if (pane) pane.scrollTop = (mark.current?.offsetTop ?? 0) - pane.clientHeight / 3;
  }, [text, quote?.start]);
  if (!text.trim()) return html`<p class="notice">The page has no text; the judge saw its pictures.</p>`;
  if (!quote || quote.start === null || quote.start === undefined) {
    return html`<pre class="page-text" tabindex="0">${text}</pre>`;
  }
  // Places count Unicode characters, as Python does; strings here count UTF-16 units.
  const [start, end] = [unitAt(text, quote.start), unitAt(text, quote.end)];
  return html`<pre class="page-text" tabindex="0">${text.slice(0, start)}<mark ref=${mark}>${text.slice(start, end)}</mark>${text.slice(end)}</pre>`;
}

/** @param {string} text @param {number} characters */
function unitAt(text, characters) {
  let unit = 0;
  for (let count = 0; count < characters && unit < text.length; count += 1) {
    unit += /** @type {number} */ (text.codePointAt(unit)) > 0xffff ? 2 : 1;
  }
  return unit;
}

/** @param {{page: any}} props */
function Images({ page }) {
  const [isLarge, setLarge] = useState(false);
  if (!page.images.length) return html`<p class="notice">No picture of this page is stored.</p>`;
  return html`
    <p><button onClick=${() => setLarge(!isLarge)} aria-pressed=${isLarge}>${isLarge ? "Fit the width" : "Full size"}</button></p>
    <div class=${`images ${isLarge ? "large" : ""}`} tabindex="0">
      ${page.images.map(
        (/** @type {string} */ name) => html`<${Picture} key=${name} ...${{ page, name }} />`,
      )}
    </div>
  `;
}

/** @param {{page: any, name: string}} props */
function Picture({ page, name }) {
  const [source, setSource] = useState(/** @type {string | null | undefined} */ (undefined));
  useEffect(() => {
    let isWanted = true;
    let made = "";
    imageAddress({ agent: page.agent, task: page.task, url: page.url, name }).then((address) => {
      made = address || "";
      if (isWanted) setSource(address);
    });
    return () => {
      isWanted = false;
      if (made.startsWith("blob:")) URL.revokeObjectURL(made);
    };
  }, [page.url, name]);
  if (source === null) return html`<p class="notice">This picture was left out when the report was written: the page has too many, or too large ones.</p>`;
  return source ? html`<img src=${source} loading="lazy" alt=${`${name.replace("-", " ")} of the page`} />` : null;
}

/** @param {{page: any}} props */
function Record({ page }) {
  const record = page.record;
  if (!record) return html`<p class="notice">There is no record of this page's capture.</p>`;
  const rows = [
    ["requested", record.requested_url],
    ["final address", record.final_url],
    ["status", record.status],
    ["content type", record.content_type],
    ["title", record.title],
    ["captured", moment(record.captured_at)],
    ["browser", record.browser],
    ["tries", record.tries],
    ["failure", record.failure],
    ["unfolded", (record.unfolded || []).join("; ")],
    ["seconds by stage", Object.entries(record.timings_s || {}).map(([stage, seconds]) => `${stage} ${seconds}`).join(", ")],
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`
    ${(record.troubles || []).map(
      (/** @type {any} */ trouble) => html`<p class="notice warn">${trouble.kind.replace("_", " ")}: ${trouble.detail}</p>`,
    )}
    ${(record.notes || []).map((/** @type {string} */ note) => html`<p class="hint">${note}</p>`)}
    <table class="facts">
      <tbody>
        ${rows.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
      </tbody>
    </table>
    ${
      (record.refused || []).length > 0 &&
      html`<details>
        <summary>Connections of the page that were refused: ${record.refused.length}</summary>
        <ul>
          ${record.refused.map((/** @type {any} */ each) => html`<li>${each.host}:${each.port}: ${each.reason}</li>`)}
        </ul>
      </details>`
    }
  `;
}

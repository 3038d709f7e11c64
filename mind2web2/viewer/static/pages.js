// Everything that was captured for an agent, failed and suspect first, and a person's decisions about it.

import { useEffect, useRef, useState } from "preact/hooks";
import { html, address, counted, KeyHelp, moment, OutsideLink, useData, useKeys, Waiting } from "viewer/parts";
import { forget, send } from "viewer/source";
import { PageView } from "viewer/page";

const MAX_ROWS = 300;

/** @param {{steps: string[], options: Record<string, string>}} props */
export function Pages({ steps, options }) {
  const { data: overview, error: overviewError } = useData("overview", {});
  const agent = steps[0] || overview?.agents[0]?.name || "";
  if (!overview) return html`<${Waiting} error=${overviewError} />`;
  return html`
    <h1>Pages of <bdi>${agent}</bdi></h1>
    ${
      overview.agents.length > 1 &&
      html`<p class="filters">
        ${overview.agents.map(
          (/** @type {any} */ each) =>
            html`<a class=${`chip ${each.name === agent ? "on" : ""}`} href=${address("pages", [each.name])}>${each.name}</a>`,
        )}
      </p>`
    }
    <${PagesOf} key=${agent} agent=${agent} options=${options} />
  `;
}

/** @param {{agent: string, options: Record<string, string>}} props */
function PagesOf({ agent, options }) {
  const [version, setVersion] = useState(0);
  const { data, error } = useData("pages", { agent }, version);
  // The list as it was last seen, while a change loads: the order of the pages must not jump.
  const [rows, setRows] = useState(/** @type {any[] | null} */ (null));
  const [message, setMessage] = useState(/** @type {{text: string, isError: boolean} | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (data && !rows) setRows(data);
  }, [data]);
  // The page that the keys act on. The address follows later: until then a key must not act on the page before.
  const chosen = useRef(/** @type {Record<string, string>} */ (options));
  const [, show] = useState({});
  useEffect(() => {
    chosen.current = options;
    show({});
  }, [options.task, options.url]);
  /** @param {any} each */
  const isChosen = (each) => each.url === chosen.current.url && each.task === chosen.current.task;
  const at = () => Math.max(0, rows ? rows.findIndex(isChosen) : 0);
  /** @param {number} step */
  const go = (step) => {
    const next = rows?.[at() + step];
    if (!next) return;
    chosen.current = { task: next.task, url: next.url };
    show({});
    location.replace(address("pages", [agent], chosen.current));
  };
  // The pages that were changed while this view is open, the latest last.
  const decided = useRef(/** @type {Record<string, string>[]} */ ([]));
  /** @param {string} path @param {any} body @param {string} done @param {Record<string, string>} [query] */
  const change = async (path, body, done, query = {}) => {
    const row = rows?.[at()];
    if (isBusy || !rows || !row) return;
    setBusy(true);
    setMessage({ text: `${done} …`, isError: false });
    try {
      const changed = await send(path, body, query);
      forget();
      setRows(rows.map((each) => (each === row ? changed : each)));
      setVersion(version + 1);
      if (path !== "/api/page-undo") decided.current.push({ task: row.task, url: row.url });
      setMessage({ text: `${done}: done. ${effect(path, body, row)}`, isError: false });
    } catch (failure) {
      setMessage({ text: String(/** @type {any} */ (failure).message || failure), isError: true });
    }
    setBusy(false);
  };
  const row = rows?.[at()];
  useEffect(() => {
    document.querySelector(".page.current")?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }, [row?.task, row?.url]);
  const place = () => ({ agent, task: rows?.[at()]?.task || "", url: rows?.[at()]?.url || "" });
  /** @param {string} decision @param {string} done */
  const decide = (decision, done) => change("/api/page-decision", { ...place(), decision }, done);
  const recapture = () => change("/api/page-recapture", place(), "Capturing again");
  const undo = () => {
    const page = place();
    const last = decided.current.findLastIndex((each) => each.task === page.task && each.url === page.url);
    if (!isBusy && last >= 0) decided.current.splice(last, 1);
    return change("/api/page-undo", page, "Undoing");
  };
  const undoLatest = () => {
    if (isBusy) return;
    chosen.current = decided.current.at(-1) || chosen.current;
    const { task, url } = place();
    location.replace(address("pages", [agent], { task, url }));
    return undo();
  };
  const forExtension = async () => {
    try {
      await send("/api/capture/target", { agent, task_id: row.task, url: row.url });
      setMessage({ text: "The browser extension captures this page next.", isError: false });
    } catch (failure) {
      setMessage({ text: String(/** @type {any} */ (failure).message || failure), isError: true });
    }
  };
  useKeys({
    j: () => go(1),
    k: () => go(-1),
    r: () => rows?.[at()]?.kind && decide("right", "Marking as right"),
    w: () => rows?.[at()]?.kind && decide("wrong", "Marking as wrong"),
    c: recapture,
    x: () => decide("remove", "Removing"),
    z: undoLatest,
  });
  if (!rows) return html`<${Waiting} error=${error} />`;
  if (!row) return html`<p class="notice">The answers of this agent cite no pages, and none is stored.</p>`;
  // Around the chosen one: a browser is slow with thousands of rows.
  const shown = rows.slice(Math.max(0, at() - MAX_ROWS / 2), Math.max(MAX_ROWS, at() + MAX_ROWS / 2));
  const counts = ["failed", "suspect", "stored"].map((state) => `${rows.filter((each) => each.state === state).length} ${state}`);
  return html`
    <p class="hint">${counts.join(", ")}</p>
    <${KeyHelp}
      keys=${[["j", "next"], ["k", "previous"], ["r", "looks right"], ["w", "wrong page"], ["c", "capture again"], ["x", "remove"], ["z", "undo"]]}
    />
    <div class="columns pages-beside">
      <section aria-label="List of pages" class="list">
        <ul class="pages">
          ${shown.map((each) => html`<${PageRow} key=${`${each.task} ${each.url}`} ...${{ each, isCurrent: each === row, agent }} />`)}
        </ul>
        ${shown.length < rows.length && html`<p class="hint">${shown.length} of ${counted(rows.length, "page")} are listed here; <kbd>j</kbd> and <kbd>k</kbd> go on to the others.</p>`}
      </section>
      <section aria-label="Page" class="beside">
        <h2 class="page-title"><${OutsideLink} href=${row.url}><bdi>${row.url}</bdi><//></h2>
        <p class="labels">
          <button disabled=${isBusy || !row.kind} onClick=${() => decide("right", "Marking as right")}>Looks right</button>
          <button disabled=${isBusy || !row.kind} onClick=${() => decide("wrong", "Marking as wrong")}>Wrong page</button>
          <button disabled=${isBusy} onClick=${recapture}>Capture again</button>
          <button disabled=${isBusy} onClick=${() => decide("remove", "Removing")}>Remove</button>
          <button disabled=${isBusy || !row.undo} onClick=${undo}>Undo</button>
          <${Upload} upload=${(/** @type {File} */ file) => change("/api/page-upload", file, "Uploading", place())} isBusy=${isBusy} />
          <button title="The browser extension captures this page next" onClick=${() => void forExtension()}>For the extension</button>
        </p>
        ${message && html`<p class=${`message notice ${message.isError ? "error" : ""}`} role="status">${message.text}</p>`}
        ${row.reviewed && html`<p class="hint">${row.reviewed.decision}, by ${row.reviewed.by}, ${moment(row.reviewed.created)}</p>`}
        <${Stored} key=${`${row.task} ${row.url} ${version}`} place=${place()} version=${version} />
      </section>
    </div>
  `;
}

/** @param {string} path @param {any} body @param {any} row as it was before */
function effect(path, body, row) {
  if (path === "/api/page-undo") return `The page is as it was before "${row.undo}".`;
  if (body.decision === "right" && !row.troubles.length) return "The page has not changed, and results that rest on it hold.";
  return "Results that rest on the page are judged again by the next run.";
}

const OUTCOMES = { failed: "unavailable", suspect: "suspect", stored: "supported" };

/** @param {any} props */
function PageRow({ each, isCurrent, agent }) {
  return html`<li class=${`page ${each.state} ${isCurrent ? "current" : ""}`}>
    <a
      href=${address("pages", [agent], { task: each.task, url: each.url })}
      aria-current=${isCurrent ? "true" : undefined}
      ><bdi>${each.url}</bdi></a
    >
    ${" "}<span class=${`outcome ${OUTCOMES[/** @type {keyof OUTCOMES} */ (each.state)]}`}>${each.state}</span> ${" "}
    <span class="where"><bdi>${each.task}</bdi></span>
    ${
      (each.reason || each.troubles.length > 0) &&
      html`<p class="why">${[each.reason, ...each.troubles.map((/** @type {string} */ kind) => kind.replaceAll("_", " "))].filter(Boolean).join("; ")}</p>`
    }
  </li>`;
}

/** @param {any} props */
function Upload({ upload, isBusy }) {
  return html`<label class="button upload"
    >Upload<input
      type="file"
      class="visually-hidden"
      accept=".pdf,.txt,.mhtml,.mht,image/*"
      disabled=${isBusy}
      onChange=${(/** @type {any} */ event) => event.target.files[0] && upload(event.target.files[0])}
  /></label>`;
}

/** @param {any} props */
function Stored({ place, version }) {
  const { data, error } = useData("page", place, version);
  return data ? html`<${PageView} page=${data} quote=${null} />` : html`<${Waiting} error=${error} />`;
}

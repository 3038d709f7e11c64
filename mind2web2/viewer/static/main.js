// The frame around all views, and which of them an address shows.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { html, address } from "viewer/parts";
import { isFile } from "viewer/source";
import { Overview } from "viewer/overview";
import { Answer } from "viewer/answer";
import { Evidence } from "viewer/evidence";
import { Compare } from "viewer/compare";
import { Leaves } from "viewer/leaves";
import { Doubts } from "viewer/doubts";
import { About } from "viewer/about";
import { Audit } from "viewer/audit";
import { Checked } from "viewer/checked";

/** @type {Record<string, {view: any, title: string}>} */
const VIEWS = {
  overview: { view: Overview, title: "Overview" },
  answer: { view: Answer, title: "Answer" },
  evidence: { view: Evidence, title: "Evidence" },
  compare: { view: Compare, title: "Compare" },
  leaves: { view: Leaves, title: "Leaves" },
  doubts: { view: Doubts, title: "Doubts" },
  about: { view: About, title: "About" },
  audit: { view: Audit, title: "Audit" },
  checked: { view: Checked, title: "Checked report" },
};
const FEATURES = new Set((document.documentElement.dataset.features || "").split(" "));
// An audit is blind: its head leads to nothing that shows verdicts. The file of a check has one view.
const ONLY = ["audit", "checked"].filter((name) => FEATURES.has(name));
const IN_NAVIGATION = ONLY.length ? ONLY : ["overview", "compare", "leaves", "doubts"];
const HOME = address(IN_NAVIGATION[0]);
const HAS_ABOUT = isFile && !FEATURES.has("checked");

function App() {
  const [route, setRoute] = useState(routeOf(location.hash));
  useEffect(() => {
    const changed = () => setRoute(routeOf(location.hash));
    window.addEventListener("hashchange", changed);
    // The address may have changed before this was listening.
    changed();
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const known = VIEWS[route.view];
  useEffect(() => {
    // A file with one view has numbers for steps.
    const names = ONLY.length ? [] : [...route.steps].reverse();
    document.title = `${names.join(" · ") || known?.title || "?"} – ${document.documentElement.dataset.title}`;
  }, [location.hash]);
  return html`
    <a class="skip" href="#main" onClick=${toMain}>To the content</a>
    <header class="top">
      <a class="brand" href=${HOME}>Mind2Web-2 <span>results</span></a>
      <nav aria-label="Views">
        ${IN_NAVIGATION.map(
          (name) =>
            html`<a href=${address(name)} aria-current=${route.view === name ? "page" : undefined}
              >${VIEWS[name].title}</a
            >`,
        )}
      </nav>
      ${HAS_ABOUT && html`<a class="about" href="#/about">about this file</a>`}
    </header>
    <main id="main" tabindex="-1">
      ${
        known
          ? html`<${known.view} key=${route.view} steps=${route.steps} options=${route.options} />`
          : html`<p class="notice error">This address shows nothing. <a href=${HOME}>${VIEWS[IN_NAVIGATION[0]].title}</a></p>`
      }
    </main>
  `;
}

/** @param {Event} event */
function toMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/**
 * @param {string} hash such as "#/answer/agent/task/answer_1?leaf=x"
 * @returns {{view: string, steps: string[], options: Record<string, string>}}
 */
function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...steps] = path.split("/").map(decoded);
  return { view: view || (FEATURES.has("checked") ? "checked" : "overview"), steps, options: Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {string} step */
function decoded(step) {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));

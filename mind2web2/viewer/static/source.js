// Where the data comes from: the local server, or the blocks of an exported file.

const FILE_BLOCK = "script[data-block]";

/** Whether this page is an exported file, which has its data within and no server. */
export const isFile = document.querySelector(FILE_BLOCK) !== null;

/** How the user starts the program, for commands that messages suggest. */
export const program = document.documentElement.dataset.program || "mind2web2";

/** @type {Map<string, Promise<any>>} */
const loaded = new Map();
const MAX_LOADED = 24;
const LASTING = new Set(["answer", "claims", "messages", "page"]);

/**
 * Return data by its kind and place; the newest few are kept.
 * @param {string} kind such as "overview", "answer" or "page"
 * @param {Record<string, string>} place
 * @returns {Promise<any>}
 */
export function load(kind, place = {}) {
  const name = blockName(kind, place);
  let found = loaded.get(name);
  if (!found) {
    found = isFile ? readBlock(name) : fetchJson(`/api/${kind}`, place);
    loaded.set(name, found);
    // Data that a run changes is looked up again whenever it is shown; views that are drawn
    // together share what is on its way.
    const drop = () => loaded.delete(name);
    found.then(isFile || LASTING.has(kind) ? undefined : drop, drop);
    if (loaded.size > MAX_LOADED) loaded.delete(String(loaded.keys().next().value));
  }
  return found;
}

/** Drop what was loaded, since it may have changed. */
export function forget() {
  loaded.clear();
}

/**
 * Send a change to the server and return its answer.
 * @param {string} path
 * @param {any} body
 */
export async function send(path, body) {
  const headers = { "content-type": "application/json" };
  return answerOf(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/**
 * Return an address of one of a page's images that an <img> can show; null where the file does not hold it.
 * @param {Record<string, string>} place with agent, task, url and name
 */
export async function imageAddress(place) {
  if (!isFile) return `/api/image?${new URLSearchParams(place)}`;
  const block = findBlock(blockName("image", place));
  if (!block) return null;
  return URL.createObjectURL(new Blob([bytesOf(block)], { type: "image/jpeg" }));
}

/** @param {string} kind @param {Record<string, string>} place */
function blockName(kind, place) {
  return JSON.stringify([kind, ...Object.keys(place).sort().map((key) => place[key])]);
}

/** @param {string} name */
function findBlock(name) {
  for (const block of document.querySelectorAll(FILE_BLOCK)) {
    if (/** @type {HTMLElement} */ (block).dataset.block === name) return block;
  }
  return null;
}

/** @param {string} name */
async function readBlock(name) {
  const block = findBlock(name);
  if (!block) throw new Error("This file does not hold it: it was left out when the report was written.");
  const unpacked = new Blob([bytesOf(block)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return parsed(await new Response(unpacked).text());
}

/** @param {Element} block */
function bytesOf(block) {
  return Uint8Array.from(atob(block.textContent.trim()), (character) => character.charCodeAt(0));
}

/** @param {string} path @param {Record<string, string>} place */
async function fetchJson(path, place) {
  return answerOf(await fetch(`${path}?${new URLSearchParams(place)}`));
}

/** @param {Response} response */
async function answerOf(response) {
  const text = await response.text();
  if (response.ok) return parsed(text);
  let reason = text;
  try {
    reason = JSON.parse(text).error;
  } catch {
    // The text itself is the reason.
  }
  throw new Error(reason || `the server answered with status ${response.status}`);
}

const DIRECTION_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Parse JSON with every control of text direction shown as a sign: such characters can make a text look like another.
 * One sign for one character, so that places in a text stay right. The JSON has the characters themselves, never
 * their escapes (json_bytes).
 * @param {string} text
 */
function parsed(text) {
  return JSON.parse(text.replace(DIRECTION_CONTROLS, "\u25a1"));
}

// What the overview's plots share: the mark of an agent, and places on a line from 0 to 1.

import { html } from "viewer/parts";

// Forms tell agents apart as well as colours, for readers who see fewer colours, and in print.
const FORMS = [
  "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5Z",
  "M-5-5H5V5H-5Z",
  "M0-6L6 5H-6Z",
  "M0-6.5L6.5 0L0 6.5L-6.5 0Z",
  "M0 6L6-5H-6Z",
  "M-5.5-2H-2V-5.5H2V-2H5.5V2H2V5.5H-2V2H-5.5Z",
];
const COLOURS = 6;
/** The lines that guide the eye: quarters. */
export const QUARTERS = [0, 0.25, 0.5, 0.75, 1];

/**
 * The class with an agent's colour; with more agents than colours, the forms go on to others for the same colour.
 * @param {number} place
 */
export function colour(place) {
  return `agent-${(place + Math.floor(place / FORMS.length)) % COLOURS}`;
}

/** @param {number} share */
export function across(share) {
  return `${(share * 100).toFixed(2)}%`;
}

/**
 * An agent's mark within an SVG; `place` is the agent's among all, in the order of the data.
 * @param {{place: number, x?: string, y: number, isOpen?: boolean}} props
 */
export function Mark({ place, x = "50%", y, isOpen = false }) {
  const form = FORMS[place % FORMS.length];
  return html`<svg x=${x} y=${y} overflow="visible"><path class=${`${colour(place)} ${isOpen ? "open" : ""}`} d=${form} /></svg>`;
}

/** @param {{place: number}} props */
export function MarkInText({ place }) {
  return html`<svg class="agent-mark" width="14" height="14" aria-hidden="true"><${Mark} place=${place} y=${7} /></svg>`;
}

// Figures as text, in the words that the terminal uses, and signs: colour alone never says anything.

import { h } from "./dom.js";

export const plural = (count, word) =>
  `${count.toLocaleString("en")} ${count === 1 ? word : `${word.replace(/([^aeiou])y$/, "$1ie")}s`}`;

export function duration(seconds) {
  const whole = Math.max(Math.floor(seconds || 0), 0);
  const two = (count) => String(count).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} m`;
}

export const seconds = (count) => (count < 9.95 ? `${Math.max(count || 0, 0).toFixed(1)} s` : duration(count));

/** `12.1k`; a number or the four counts of a session. */
export function tokens(count) {
  const total = typeof count === "number" ? count : totalOf(count);
  if (total < 1000) return String(total);
  return total < 1e6 ? `${(total / 1000).toFixed(1)}k` : `${(total / 1e6).toFixed(2)}M`;
}

export const totalOf = (count) =>
  typeof count === "number" ? count : ["input", "output", "cache_read", "cache_write"].reduce((sum, name) => sum + (count?.[name] ?? 0), 0);

export function money(usd, isEstimated = false, unknown = 0) {
  if (usd === null || usd === undefined) return unknown ? "unknown" : "–";
  return `${isEstimated ? "~" : ""}$${usd.toFixed(2)}${unknown ? " +?" : ""}`;
}

const two = (count) => String(count).padStart(2, "0");

export function clock(t) {
  const at = new Date(t * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function moment(t) {
  const at = new Date(t * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export const time = (t, asText = moment) => h("time", { datetime: new Date((t || 0) * 1000).toISOString() }, asText(t || 0));

export function ago(t, now) {
  const passed = Math.max(now - t, 0);
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return passed < 7 * 86400 ? `${plural(Math.floor(passed / 86400), "day")} ago` : moment(t);
}

/** A sentence of ours; what stands in `backticks` is something to type. */
export const prose = (text) => text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? h("code", null, part) : part));

export const percent = (part) => (part === null || part === undefined ? "–" : `${Math.round(part * 100)}%`);

/** The last part of a path, which names a workspace well enough where the whole one is the tooltip. */
export const folder = (path) => path.split("/").filter(Boolean).pop() ?? path;

/** Tells runs of one plan apart, where the whole ID is the tooltip. */
export const shortId = (run) => run.split("-").pop();

const PATHS = {
  check: ["M3 8.5 6.5 12 13 4.5"],
  double: ["M1 8.5 4 12 10 4.5", "M7.5 11 8.5 12 14.5 4.5"],
  cross: ["M4 4 12 12", "M12 4 4 12"],
  half: ["M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12", "M8 2v12", "M5.5 3v10", "M3.5 4.5v7"],
  ask: ["M5 6a3 3 0 1 1 4.5 2.600C8.3 9.3 8 9.8 8 10.8", "M8 13.400v.2"],
  wait: ["M4 2h8", "M4 14h8", "M5 2c0 4 6 4 6 6s-6 2-6 6", "M11 2c0 4-6 4-6 6s6 2 6 6"],
  play: ["M5 3v10l8-5Z"],
  pause: ["M5 3v10", "M11 3v10"],
  stop: ["M4 4h8v8H4Z"],
  dot: ["M8 6.5a1.5 1.5 0 1 1 0 3a1.5 1.5 0 1 1 0-3"],
  ring: ["M8 3a5 5 0 1 1 0 10a5 5 0 1 1 0-10"],
  eye: ["M1.5 8C4 4 12 4 14.5 8C12 12 4 12 1.5 8Z", "M8 6.5a1.5 1.5 0 1 1 0 3a1.5 1.5 0 1 1 0-3"],
  speech: ["M2.5 3h11v7.5H8L5 13.5v-3H2.5Z"],
  warn: ["M8 2 14.5 13.5H1.5Z", "M8 6.5v3", "M8 11.600v.2"],
  back: ["M6 3 2.5 6.5 6 10", "M2.5 6.5H10a3.5 3.5 0 0 1 0 7H7"],
  dashed: ["M8 3a5 5 0 0 1 4 2", "M13 8a5 5 0 0 1-2 4", "M8 13a5 5 0 0 1-4-2", "M3 8a5 5 0 0 1 2-4"],
  plug: ["M2 14 5 11", "M4 7l5 5c2-1 3-3 2-5L9 5C7 4 5 5 4 7Z", "M9 5 12 2", "M11 7l3-3"],
  sun: ["M8 5.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 1 1 0-5", "M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.400l1 1M11.6 11.600l1 1M3.4 12.600l1-1M11.6 4.400l1-1"],
  moon: ["M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5Z"],
  pen: ["M3 13l.7-3L11 2.700l2.3 2.300L6 12.300Z"],
  print: ["M4.5 6V2h7v4", "M4.5 11H2V6h12v5h-2.5", "M4.5 9h7v5h-7Z"],
};

export const icon = (name) =>
  h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, PATHS[name].map((d) => h("path", { d })));

// word → [tone, sign]
const VERDICTS = {
  accepted: ["good", "check"], partial: ["info", "half"], rejected: ["bad", "cross"], blocked: ["warn", "ask"],
  limit: ["warn", "wait"], transport: ["warn", "plug"], crashed: ["bad", "cross"], "timed-out": ["bad", "wait"],
  misconfigured: ["bad", "warn"], interrupted: ["warn", "stop"], returned: ["warn", "back"],
};
const STANDINGS = {
  running: ["info", "play"], paused: ["warn", "pause"], waiting: ["warn", "wait"], ended: ["plain", "stop"],
  finished: ["good", "check"], unfinished: ["bad", "plug"], unreadable: ["bad", "warn"],
};
const STORIES = {
  done: ["good", "check"], "approved with open findings": ["warn", "speech"], unproven: ["warn", "dashed"],
  failed: ["bad", "cross"], blocked: ["warn", "ask"], "in progress": ["info", "play"], open: ["plain", "ring"],
  gone: ["plain", "dashed"],
};
const GRADES = {
  proven: ["good", "double"], witnessed: ["good", "eye"], reviewed: ["info", "speech"], unproven: ["warn", "dashed"],
};
const FATES = { open: ["warn", "warn"], fixed: ["info", "pen"], rejected: ["plain", "cross"], closed: ["good", "check"] };
const RESULTS = { passed: ["good", "check"], failed: ["bad", "cross"], "failed, may fail": ["warn", "cross"] };

export const MEANING = {
  proven: "its own check or an acceptance test fails without the change",
  witnessed: "a test fails without the change",
  reviewed: "no test fails without the change; a review approved it",
  unproven: "no test fails without the change, and no review approved it",
};

function chipOf(table, word, shown = word, title = undefined) {
  const [tone, sign] = table[word] ?? ["plain", "dot"];
  return h("span", { class: `chip ${tone}`, title }, icon(sign), h("span", null, shown));
}

export const verdictChip = (kind) => (kind ? chipOf(VERDICTS, kind) : chipOf(STANDINGS, "running"));
export const stateChip = (state) => chipOf(STORIES, state);
export const gradeChip = (grade) => (grade ? chipOf(GRADES, grade, grade, MEANING[grade]) : null);
export const fateChip = (fate, byUser) => chipOf(FATES, fate, byUser ? `${fate} by you` : fate);
export const resultChip = (result) =>
  chipOf(RESULTS, result.passed ? "passed" : result.required === false ? "failed, may fail" : "failed");

/** An ended run is finished, or it stopped for another reason. */
export function standingChip(run) {
  if (run.standing !== "ended") return chipOf(STANDINGS, run.standing);
  return run.reason === "complete" ? chipOf(STANDINGS, "finished") : chipOf(STANDINGS, "ended", run.reason ? `stopped: ${run.reason}` : "ended");
}

// Parts that several pages have: tables, bars, folds, charts, figures.

import { h } from "./dom.js";
import { prose } from "./format.js";
import * as server from "./server.js";

/**
 * A table that becomes a list of cards on a phone. Its roles are written out, because a browser forgets them when the
 * style sheet makes blocks of its rows. `columns`: name, cell(row), class; a cell of null is empty.
 */
export function table(caption, columns, rows, { key, rowClass, empty = "", isHidden = true } = {}) {
  if (!rows.length && empty) return h("p", { class: "empty" }, empty);
  const head = h("tr", { role: "row" }, columns.map((each) =>
    h("th", { scope: "col", role: "columnheader", class: each.class ?? "" }, each.name)));
  const body = rows.map((row) => h("tr", { role: "row", key: key?.(row), class: rowClass?.(row) ?? "" }, columns.map((each, at) => {
    const content = each.cell(row);
    const name = content === null ? `${each.class ?? ""} blank` : each.class ?? "";
    return h(at ? "td" : "th", { role: at ? "cell" : "rowheader", scope: at ? undefined : "row", class: name, "data-label": each.name }, content);
  })));
  return h("table", { role: "table" },
    h("caption", { class: isHidden ? "unseen" : "" }, caption),
    h("thead", { role: "rowgroup" }, head), h("tbody", { role: "rowgroup" }, body));
}

export function bar(done, total, label) {
  const part = total ? Math.max(done / total, done ? 0.03 : 0) : 0;
  const is = { role: "progressbar", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": total, "aria-valuenow": done };
  return h("div", { class: `bar ${total && done === total ? "full" : ""}`, ...is }, h("div", { style: { width: `${part * 100}%` } }));
}

/** A fact: what it is, and its value, which is read in this order. */
export const fact = (name, value, note = "", title = undefined) =>
  h("div", { class: "fact", title }, h("dt", null, name), h("dd", null, value, note ? h("small", null, note) : null));

/** Why a page has nothing to show, and where to go from there. */
export const trouble = (error, href = "#/", label = "All runs of this machine") =>
  h("div", { class: "callout bad" }, h("p", null, `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`),
    error.status === 404 ? h("p", null, h("a", { href }, label)) : error.hint ? h("p", null, prose(error.hint)) : null);

export const facts = (list, name = "facts") => h("dl", { class: name }, list.filter(Boolean));

/** A fold that stays as the user left it. What `content` makes is made when it is opened first. */
export function fold(key, summary, content, { isOpen = false, name = "fold" } = {}) {
  return h("details", { key, class: name, open: isOpen }, h("summary", null, summary), content);
}

/** Text of an agent or a program: as it is, with its line breaks. A long one scrolls, so it can have the focus. */
export const pre = (text, label, name = "") => h("pre", { class: name, tabindex: "0", role: "region", "aria-label": label }, text);

const ELEMENTS = new Set(["svg", "g", "rect", "path", "line", "polyline", "polygon", "circle", "ellipse", "text", "tspan",
  "title", "desc", "defs", "clipPath", "pattern", "linearGradient", "stop", "use"]);
const ATTRIBUTE = /^(?!on)(?!style$)[a-zA-Z][\w-]*$/;

/** An SVG document of the server as nodes, without everything that could run, load or link something. */
export function picture(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg" || root.querySelector("parsererror")) throw new Error("the chart is not SVG");
  const taken = document.importNode(strip(root), true);
  return taken;
}

function strip(node) {
  for (const child of [...node.children]) {
    if (ELEMENTS.has(child.localName)) strip(child);
    else child.remove();
  }
  for (const { name, value } of [...node.attributes]) {
    const isLink = name === "href" || name === "xlink:href";
    if (isLink ? !value.startsWith("#") : name !== "xmlns" && !ATTRIBUTE.test(name)) node.removeAttribute(name);
    else if (!isLink && /url\s*\((?!#|["']#)/i.test(value)) node.removeAttribute(name);
  }
  return node;
}

/**
 * A chart that the server draws. It is asked for again when `version` changes; the old picture stays until the new one
 * is there, so that nothing jumps. `pick` hears which iteration a person chose; one narrower than `least` scrolls.
 */
export function chart({ key, path, version, title, note = "", least = 280, pick = null, alternative = null }) {
  return h("figure", { key, class: "chart" },
    h("figcaption", null, h("h3", null, title), note ? h("p", null, note) : null),
    h("div", { class: "picture", own: true, tabindex: "0", role: "group", "aria-label": title, mount: follow, update: (node) => node.clientWidth && draw(node, `${path}&width=${Math.max(node.clientWidth, least)}`, version, pick) }),
    alternative);
}

/** A picture is drawn for the width it has, so that its letters keep their size. */
function follow(node) {
  let width = node.clientWidth;
  new ResizeObserver(() => {
    if (node.clientWidth === width) return;
    width = node.clientWidth;
    node.dispatchEvent(new CustomEvent("stale", { bubbles: true }));
  }).observe(node);
}

const MOST_OFTEN = 2500; // milliseconds between two pictures of a run under way

async function draw(node, path, version, pick) {
  const wanted = `${path} ${version}`;
  if (node.wanted === wanted || node.isAsking) {
    node.isStale = node.isAsking && node.wanted !== wanted;
    return;
  }
  node.wanted = wanted;
  node.isAsking = true;
  try {
    const drawn = picture(await server.chart(path));
    if (pick) makePickable(drawn, pick);
    const focused = node.contains(document.activeElement) ? document.activeElement.dataset.iteration : null;
    const { scrollLeft } = node;
    node.replaceChildren(drawn);
    node.scrollLeft = scrollLeft;
    if (focused) [...node.querySelectorAll("[data-iteration]")].find((each) => each.dataset.iteration === focused)?.focus();
    node.classList.remove("missing");
  } catch (error) {
    if (!node.querySelector("svg")) {
      node.classList.add("missing");
      node.textContent = error.message;
    }
  } finally {
    setTimeout(() => {
      node.isAsking = false;
      if (node.isStale && node.isConnected) node.dispatchEvent(new CustomEvent("stale", { bubbles: true }));
    }, MOST_OFTEN);
  }
}

function makePickable(drawn, pick) {
  drawn.setAttribute("role", "group"); // a picture has no links inside
  for (const mark of drawn.querySelectorAll("[data-iteration]")) {
    const number = Number(mark.dataset.iteration);
    if (!Number.isInteger(number) || number < 1) continue;
    mark.setAttribute("tabindex", "0");
    mark.setAttribute("role", "link");
    mark.setAttribute("aria-label", mark.querySelector("title")?.textContent ?? `iteration ${number}`);
    mark.addEventListener("click", () => pick(number));
    mark.addEventListener("keydown", (event) => event.key === "Enter" && pick(number));
  }
}

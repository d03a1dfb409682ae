// The page: which part is shown, in which theme, with which keys. Everything else is in the modules it imports.

import { tell } from "./acts.js";
import { Compare } from "./compare.js";
import { byId, h, patch } from "./dom.js";
import { icon } from "./format.js";
import { Home } from "./home.js";
import { Feed, Run } from "./run.js";
import * as server from "./server.js";
import { Story } from "./story.js";

const WIDE = matchMedia("(min-width: 900px)");
const DARK = matchMedia("(prefers-color-scheme: dark)");
const QUIET = 4000; // milliseconds between two verdicts that a screen reader hears

const app = {
  view: null,
  feed: null,
  route: "",
  isSignedOut: null,
  frame: null,
  places: new Map(), // route → how far it was scrolled

  get theme() {
    return document.documentElement.dataset.theme ?? (DARK.matches ? "dark" : "light");
  },
  get isWide() {
    return WIDE.matches;
  },
  go(route) {
    app.isBack = false;
    location.hash = route;
  },
  redraw() {
    app.frame ??= requestAnimationFrame(draw);
  },
  follow: (path, kinds, onMissing) => new server.Stream(path, kinds, connection, onMissing),
  announce(text) {
    app.announced = text;
    app.quiet ??= setTimeout(() => {
      app.quiet = null;
      byId("status").textContent = app.announced;
    }, app.heard && Date.now() - app.heard < QUIET ? QUIET : 0);
    app.heard = Date.now();
  },
};

function connection(isThere) {
  const lost = byId("lost");
  if (isThere) clearTimeout(app.losing);
  else if (lost.hidden) {
    app.losing ??= setTimeout(() => {
      patch(lost, [icon("plug"), h("span", null, "Connection lost. What you see may be old; trying again …")]);
      lost.hidden = false;
      byId("alert").textContent = "Connection lost";
    }, 300);
    return;
  }
  if (isThere) {
    app.losing = null;
    if (!lost.hidden) byId("status").textContent = "Connected again";
    lost.hidden = true;
  }
}

// Routes

const ROUTES = [
  [/^#\/run\/([^/]+)\/story\/([^/]+)(?:\/(\d+))?$/, (run, story, number) => new Story(app, feedOf(run), story, Number(number ?? 0))],
  [/^#\/run\/([^/]+)\/attempt\/(\d+)$/, (run, number) => new Story(app, feedOf(run), "", Number(number))],
  [/^#\/run\/([^/]+)(?:\/(charts|events|live|checks))?$/, (run, tab) => new Run(app, feedOf(run), tab ?? "")],
  [/^#\/compare\/([^/]+)\/([^/]+)$/, (a, b) => new Compare(app, a, b)],
];

function feedOf(run) {
  if (app.feed?.id === run) return app.feed;
  app.feed?.close();
  app.feed = new Feed(app, run);
  return app.feed;
}

function viewOf(route) {
  for (const [pattern, make] of ROUTES) {
    const match = pattern.exec(route);
    if (!match) continue;
    try {
      return make(...match.slice(1).map((part) => part && decodeURIComponent(part)));
    } catch {
      break; // what is not an encoded text leads to the first page
    }
  }
  return new Home(app);
}

function show() {
  const route = location.hash || "#/";
  if (route === "#main") return;
  const isFirst = app.view === null;
  app.view?.stop();
  app.route = route;
  app.view = viewOf(route);
  if (app.feed && !app.view.feed) {
    app.feed.close();
    app.feed = null;
  }
  byId("main").replaceChildren();
  app.view.start();
  draw();
  const y = app.isBack ? app.places.get(route) ?? 0 : 0;
  app.isBack = true;
  if (!/\/\d+$/.test(route)) restore(y, 20);
  if (!isFirst) (byId("main").querySelector("h1") ?? byId("main")).focus({ preventScroll: true });
}

/** The content of a page may come a moment later, so its old scroll position is tried a few times. */
function restore(y, tries) {
  scrollTo(0, y);
  if (y && scrollY < y && tries) setTimeout(restore, 50, y, tries - 1);
}

function draw() {
  cancelAnimationFrame(app.frame);
  app.frame = null;
  drawTop();
  if (app.isSignedOut) {
    patch(byId("main"), signIn());
    return;
  }
  patch(byId("main"), app.view.render());
  document.title = `${app.view.title} – Ralph`;
}

function drawTop() {
  patch(byId("top"), [
    h("a", { class: "brand", href: "#/", "aria-label": "Ralph: all runs" }, h("img", { src: "/static/icon.svg", alt: "", width: "24", height: "24" }), h("span", null, "Ralph")),
    h("div", { class: "tools" },
      h("button", { type: "button", class: "tool", "aria-label": `Switch to the ${app.theme === "dark" ? "light" : "dark"} theme`, onclick: switchTheme }, icon(app.theme === "dark" ? "sun" : "moon")),
      h("button", { type: "button", class: "tool", "aria-label": "Keyboard shortcuts", onclick: help }, "?")),
  ]);
}

// Without a session

document.addEventListener("signed-out", (event) => {
  app.isSignedOut = event.detail;
  app.view?.stop();
  app.feed?.close();
  app.redraw();
});

function signIn() {
  return h("section", { class: "signin" }, h("h1", { tabindex: "-1" }, "Sign in"),
    h("p", null, "This page needs the token that ", h("code", null, "ralph serve"), " printed when it started: open the address it printed, or paste the token here."),
    h("p", { class: "soft" }, "The token changes when the server is started again."),
    h("form", { class: "box", onsubmit: (event) => {
      event.preventDefault();
      const typed = event.target.elements.token.value.trim();
      const token = /[?&]token=([\w-]+)/.exec(typed)?.[1] ?? typed;
      if (token) location.assign(`/?token=${encodeURIComponent(token)}${location.hash}`);
    } },
    h("label", { for: "token" }, "Token, or the address with it"),
    h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true }),
    h("button", { type: "submit", class: "act main" }, "Sign in")));
}

// Theme

function switchTheme() {
  const chosen = app.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem("theme", chosen);
  } catch {
    // Storage may be switched off; the theme then lasts as long as the page.
  }
  app.redraw();
}

// Keys

const KEYS = [
  ["?", "this list", help],
  ["h", "all runs", () => app.go("#/")],
  ["/", "search", () => (byId("search") ?? byId("main").querySelector("input[type=search]"))?.focus()],
  ["t", "switch between light and dark", switchTheme],
  ["1 … 5", "parts of a run", null],
  ["p", "pause the run, or resume it", () => press("pause") || press("resume")],
  ["s", "stop the run (asks)", () => press("stop")],
  ["n", "note to the agent", () => press("note")],
  ["j, k", "next or previous link in a table", null],
];

const press = (verb) => {
  const found = byId("main").querySelector(`.acts [data-verb="${verb}"]:not(:disabled)`);
  found?.click();
  return Boolean(found);
};

function areKeysOn() {
  try {
    return localStorage.getItem("keys") !== "off";
  } catch {
    return true;
  }
}

function help() {
  const dialog = byId("dialog");
  const isOn = areKeysOn();
  dialog.replaceChildren();
  patch(dialog, h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, "Keyboard shortcuts"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, what)))),
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: isOn, onchange: (event) => {
      try {
        localStorage.setItem("keys", event.target.checked ? "on" : "off");
      } catch {
        tell("This browser keeps no settings for this page.", "bad");
      }
    } }), " Shortcuts are on"),
    h("div", { class: "choices" }, h("button", { type: "submit", class: "act main" }, "Close"))));
  dialog.onclose = null;
  dialog.showModal();
}

function step(by) {
  const links = [...byId("main").querySelectorAll("tbody th a, tbody td:first-child a, .attempt > details > summary")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || byId("dialog").open || !areKeysOn()) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const tabs = [...byId("main").querySelectorAll(".tabs a")];
  if (/^[1-5]$/.test(event.key) && tabs[event.key - 1]) tabs[event.key - 1].click();
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else {
    const found = KEYS.find(([key, , act]) => key === event.key && act);
    if (!found) return;
    found[2]();
  }
  event.preventDefault();
});

// A link of the page leads to its top; going back leads to where one was.
document.addEventListener("click", (event) => {
  if (event.target.closest("a[href^='#/']")) app.isBack = false;
});
document.addEventListener("scroll", () => app.places.set(app.route, scrollY), { passive: true });
document.addEventListener("stale", () => app.redraw());
WIDE.addEventListener("change", () => app.redraw());
DARK.addEventListener("change", () => app.redraw());
addEventListener("hashchange", show);
setInterval(() => app.view?.isLive && !document.hidden && app.redraw(), 1000);
history.scrollRestoration = "manual";
server.home().catch(() => {});
show();

// The first page: what is running, what waits for a person, and all runs of this machine.

import * as acts from "./acts.js";
import { between, h } from "./dom.js";
import { ago, duration, folder, gradeChip, icon, money, plural, prose, shortId, standingChip, time, tokens } from "./format.js";
import { bar, fact, facts, table } from "./parts.js";
import * as server from "./server.js";

const MOST = 100;
const FEW = 6; // runs that need no search
const runLink = (run) => `#/run/${encodeURIComponent(run)}`;
const storyLink = (run, story) => `${runLink(run)}/story/${encodeURIComponent(story)}`;

const KINDS = { question: ["ask", "asks"], failed: ["cross", "failed"], paused: ["pause", "paused"], unproven: ["dashed", "is unproven"] };

export class Home {
  constructor(app) {
    this.app = app;
    this.title = "Runs";
    this.search = "";
    this.standing = "";
    this.workspace = "";
    this.most = MOST;
    this.picked = [];
  }

  start() {
    const take = (found) => {
      this.found = found;
      this.offset = found.now - Date.now() / 1000;
      this.app.redraw();
    };
    this.stream = this.app.follow(server.homeStream(), { home: take });
  }

  stop() {
    this.stream.close();
  }

  get isLive() {
    return this.found?.runs.some((run) => run.is_live);
  }

  get now() {
    return Date.now() / 1000 + this.offset;
  }

  render() {
    if (!this.found) return [h("h1", { tabindex: "-1" }, "Runs"), h("p", { class: "empty" }, "Loading …")];
    const { runs, waiting, host } = this.found;
    const live = runs.filter((run) => run.is_live);
    return [
      h("div", { class: "head" }, h("h1", { tabindex: "-1" }, "Runs"), host ? h("p", { class: "soft" }, `on ${host}`) : null),
      acts.readOnlyNote(this.found.read_only),
      live.length || waiting.length ? null : h("p", { key: "idle", class: "empty" }, "Nothing is running, and nothing waits for you."),
      live.length ? h("section", { key: "live", "aria-labelledby": "live" }, h("h2", { id: "live" }, "Running ", h("span", { class: "count" }, live.length)),
        h("div", { class: "cards" }, live.map((run) => this.card(run)))) : null,
      waiting.length ? h("section", { key: "waiting", "aria-labelledby": "waiting" },
        h("h2", { id: "waiting" }, "Waiting for you ", h("span", { class: "count warn" }, waiting.length)),
        h("ul", { class: "waiting" }, waiting.map((each) => this.waiting(each)))) : null,
      h("section", { key: "all", "aria-labelledby": "all" }, h("h2", { id: "all" }, "All runs ", h("span", { class: "count" }, runs.length)), this.all(runs)),
    ];
  }

  card(run) {
    const verbs = run.standing === "paused" ? [["resume", "Resume"]] : [["pause", "Pause"]];
    return h("article", { key: run.run, class: "card" },
      h("div", { class: "row" }, h("h3", null, h("a", { href: runLink(run.run) }, run.plan || run.run)), standingChip(run)),
      h("p", { class: "soft", title: run.workspace }, between([folder(run.workspace), run.branch, h("span", { class: "mono", title: run.run }, shortId(run.run))])),
      h("p", { class: "doing" }, run.doing || "between two iterations"),
      bar(run.done, run.total, "stories done"),
      facts([
        fact("stories", `${run.done}/${run.total}`),
        fact("time", duration(this.now - run.started)),
        fact("tokens", tokens(run.tokens)),
        fact("cost", money(run.cost_usd, run.is_estimated)),
      ], "facts small"),
      this.found.read_only ? null : h("div", { class: "acts" }, verbs.map(([verb, label]) => acts.button({ run: run.run, verb, label }))));
  }

  waiting(each) {
    const run = this.found.runs.find((card) => card.run === each.run);
    const [sign, word] = KINDS[each.kind] ?? ["warn", each.kind];
    const where = run ? [...new Set([run.plan, folder(run.workspace)])].join(", ") : each.run;
    return h("li", { key: `${each.run} ${each.kind} ${each.story}`, class: `wait ${each.kind}` },
      h("div", { class: "row" },
        h("p", null, icon(sign), " ", each.story ? h("a", { href: storyLink(each.run, each.story) }, each.story) : "The run", ` ${each.story ? word : "is paused"}`),
        h("a", { class: "soft", href: runLink(each.run) }, where)),
      each.story ? h("p", { class: "said" }, each.text || "no reason is recorded") : null,
      this.found.read_only ? null : this.remedy(each));
  }

  remedy(each) {
    const press = (verb, label, act) => h("div", { class: "acts" }, acts.button({ run: `${each.run}-${each.story}`, verb, label, tone: "main", onclick: () => acts.perform(each.run, act) }));
    if (each.kind === "question") return acts.answerBox(each.run, each.story);
    if (each.kind === "failed") return press("retry", `Retry ${each.story}`, { verb: "retry", story: each.story });
    return each.kind === "paused" ? press("resume", "Resume", { verb: "resume" }) : null;
  }

  filtered(runs) {
    const wanted = this.search.toLowerCase();
    return runs.filter((run) =>
      (!this.standing || standingOf(run) === this.standing) && (!this.workspace || run.workspace === this.workspace) &&
      (!wanted || [run.run, run.workspace, run.plan, run.agent, run.model, run.branch, run.reason].join(" ").toLowerCase().includes(wanted)));
  }

  all(runs) {
    if (!runs.length) return h("p", { class: "empty" }, prose("No run yet: `ralph run` starts one."));
    const change = (name) => (event) => {
      this[name] = event.target.value;
      this.app.redraw();
    };
    const select = (name, label, values) => h("label", { class: "field" }, h("span", null, label),
      h("select", { onchange: change(name) }, h("option", { value: "" }, "all"), values.map(([value, word]) => h("option", { key: value, value }, word))));
    const places = [...new Set(runs.map((run) => run.workspace))].sort().map((place) => [place, folder(place) || place]);
    const standings = [...new Set(runs.map(standingOf))].sort().map((each) => [each, each]);
    const found = this.filtered(runs);
    return [
      runs.length < 2 ? null : h("form", { key: "filter", class: "filter", role: "search", onsubmit: (event) => event.preventDefault() },
        runs.length < FEW ? null : h("label", { class: "field grow" }, h("span", null, "Search"), h("input", { type: "search", id: "search", oninput: change("search"), placeholder: "plan, folder, agent, branch …" })),
        runs.length < FEW ? null : [select("workspace", "Workspace", places), select("standing", "Status", standings)],
        h("button", { type: "button", class: "act", disabled: this.picked.length !== 2 || undefined, title: "choose two runs in the table",
          onclick: () => this.app.go(`#/compare/${this.picked.map(encodeURIComponent).join("/")}`) }, `Compare (${this.picked.length}/2)`)),
      h("p", { key: "found", class: "unseen", role: "status" }, `${plural(found.length, "run")} found`),
      table("All runs", this.columns(runs), found.slice(0, this.most), { key: (run) => run.run, empty: "No run matches." }),
      found.length > this.most ? h("button", { type: "button", class: "act", onclick: () => {
        this.most += MOST;
        this.app.redraw();
      } }, `Show ${Math.min(MOST, found.length - this.most)} more of ${found.length}`) : null,
    ];
  }

  columns(runs) {
    return [
      { name: "Plan", cell: (run) => [h("a", { href: runLink(run.run) }, run.plan || run.run), h("small", null, between([h("span", { title: run.workspace }, folder(run.workspace)), h("span", { class: "mono", title: run.run }, shortId(run.run))]))] },
      { name: "Status", class: "wide", cell: (run) => standingChip(run) },
      { name: "Stories", cell: (run) => h("span", { class: "withbar" }, `${run.done}/${run.total}`, bar(run.done, run.total, "stories done"), run.failed ? h("small", null, `${run.failed} failed`) : null) },
      { name: "Proof", cell: (run) => !Object.keys(run.grades).length ? null : h("span", { class: "chips" }, Object.entries(run.grades).map(([grade, count]) => h("span", { class: "graded" }, `${count} `, gradeChip(grade)))) },
      { name: "Iterations", class: "number", cell: (run) => String(run.iterations) },
      { name: "Tokens", class: "number", cell: (run) => tokens(run.tokens) },
      { name: "Cost", class: "number", cell: (run) => money(run.cost_usd, run.is_estimated) },
      { name: "Started", cell: (run) => h("span", { title: run.run }, time(run.started, (t) => ago(t, this.now))) },
      { name: "Compare", class: "pick", cell: (run) => runs.length < 2 ? null : h("input", { type: "checkbox", "aria-label": `Compare run ${run.run}`, onchange: (event) => this.pick(run.run, event.target) }) },
    ];
  }

  pick(run, box) {
    this.picked = box.checked ? [...this.picked, run] : this.picked.filter((each) => each !== run);
    if (this.picked.length > 2) {
      box.checked = false;
      this.picked = this.picked.slice(0, 2);
      acts.tell("Two runs can be compared.", "bad", "Deselect one of them first.");
    }
    this.app.redraw();
  }
}

const standingOf = (run) => (run.standing === "ended" && run.reason ? (run.reason === "complete" ? "finished" : `stopped: ${run.reason}`) : run.standing);

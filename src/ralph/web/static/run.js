// One run: what it does now, its stories, its time, its figures, every event, and what its agents say at this moment.

import * as acts from "./acts.js";
import { between, h } from "./dom.js";
import {
  MEANING, clock, duration, folder, gradeChip, icon, money, moment, percent, plural, prose, resultChip, seconds, standingChip, stateChip, time, tokens, verdictChip,
} from "./format.js";
import { bar, chart, fact, facts, fold, pre, table, trouble } from "./parts.js";
import { Rows } from "./rows.js";
import * as server from "./server.js";
import { said } from "./transcript.js";

const TABS = [["", "Overview"], ["charts", "Charts"], ["events", "Events"], ["live", "Live"], ["checks", "Checks"]];
const MOST = 200;
const TAIL = 12;

export const runLink = (run, part = "") => `#/run/${encodeURIComponent(run)}${part ? `/${part}` : ""}`;
export const storyLink = (run, story) => runLink(run, `story/${encodeURIComponent(story)}`);

/** What is known of one run, kept up to date by its stream; the pages of a run share it. */
export class Feed {
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.doc = null;
    this.tail = [];
    this.live = new Map(); // iteration → what its agent wrote last
    this.verdicts = new Map();
    this.stream = app.follow(server.runStream(id), {
      run: (doc) => this.take(doc),
      tail: ({ events }) => {
        const known = this.tail.filter((each) => each.seq < events[0]?.seq); // after a new connection, some come again
        this.tail = [...known, ...events].slice(-200);
        app.redraw();
      },
      live: (part) => {
        this.live.set(part.iteration, part);
        app.redraw();
      },
    }, (error) => {
      this.problem = error;
      app.redraw();
    });
  }

  get now() {
    return this.doc?.standing === "ended" || this.doc?.standing === "unfinished" ? this.doc.seen : Date.now() / 1000 + this.offset;
  }

  get isLive() {
    return ["running", "paused", "waiting"].includes(this.doc?.standing);
  }

  take(doc) {
    const isFirst = this.doc === null;
    this.doc = doc;
    this.offset = doc.now - Date.now() / 1000;
    const open = new Set(doc.current.map((each) => each.iteration));
    for (const iteration of this.live.keys()) if (!open.has(iteration) && open.size) this.live.delete(iteration);
    for (const attempt of doc.attempts) {
      const known = this.verdicts.get(attempt.iteration);
      this.verdicts.set(attempt.iteration, attempt.verdict);
      if (!isFirst && attempt.verdict && known !== attempt.verdict) this.app.announce(`${attempt.story || attempt.mode} ${attempt.verdict}: ${attempt.headline}`);
    }
    this.app.redraw();
  }

  close() {
    this.stream.close();
  }
}

/** The head that all pages of a run have. */
export function head(feed, { tab = null, crumb = null } = {}) {
  const { doc, id } = feed;
  const facts = between([
    h("span", { title: doc.workspace }, folder(doc.workspace)), doc.branch, doc.agent && `${doc.agent}${doc.model ? ` ${doc.model}` : ""}`, h("span", { class: "mono" }, doc.run),
  ]);
  return h("div", { class: "runhead", key: "head" },
    h("nav", { class: "crumbs", "aria-label": "You are here" }, h("a", { href: "#/" }, "Runs"), h("span", { "aria-hidden": "true" }, "›"),
      crumb ? [h("a", { href: runLink(id) }, doc.plan || id), h("span", { "aria-hidden": "true" }, "›"), h("span", { "aria-current": "page" }, crumb)] : h("span", { "aria-current": "page" }, doc.plan || id)),
    crumb ? null : [
      h("div", { class: "head" }, h("div", null, h("div", { class: "head" }, h("h1", { tabindex: "-1" }, doc.plan || id), standingChip(doc)), h("p", { class: "soft" }, facts)), actsOf(feed)),
      acts.readOnlyNote(doc.read_only),
      h("nav", { class: "tabs", "aria-label": "Parts of the run" }, TABS.filter(([name]) => name !== "live" || feed.isLive || tab === "live").map(([name, label]) =>
        h("a", { key: name, href: runLink(id, name), "aria-current": tab === name ? "page" : undefined }, label)),
      h("a", { key: "report", href: `/report/${id}` }, "Report"))]);
}

function actsOf(feed) {
  const { doc, id } = feed;
  const can = (verb) => doc.acts.includes(verb);
  const wish = doc.wish ?? {};
  const pending = wish.now ? "stopping now" : wish.stop ? "stops after this iteration" : wish.pause && doc.standing !== "paused" ? "pauses after this iteration" : "";
  return h("div", { class: "acts", key: "acts" },
    pending && feed.isLive ? h("span", { class: "chip warn" }, icon("wait"), h("span", null, pending)) : null,
    can("pause") && !wish.pause ? acts.button({ run: id, verb: "pause", label: "Pause" }) : null,
    can("resume") && (wish.pause || doc.standing === "paused") ? acts.button({ run: id, verb: "resume", label: "Resume", tone: "main" }) : null,
    can("stop") || can("stop-now") ? acts.button({ run: id, verb: "stop", label: "Stop …", onclick: () => acts.stop(id, doc.acts) }) : null,
    can("note") ? acts.button({ run: id, verb: "note", label: "Note …", onclick: () => acts.note(id) }) : null);
}

export class Run {
  constructor(app, feed, tab) {
    Object.assign(this, { app, feed, tab, most: MOST, filter: "", picked: null });
  }

  get title() {
    return this.feed.doc?.plan || this.feed.id;
  }

  start() {
    if (this.tab === "checks") this.loadChecks();
  }

  stop() {}

  get isLive() {
    return this.feed.isLive;
  }

  async loadChecks() {
    try {
      this.ofRun = await server.checks(this.feed.id);
    } catch (error) {
      this.problem = error;
    }
    this.app.redraw();
  }

  render() {
    const { feed } = this;
    if (!feed.doc) return [h("h1", { tabindex: "-1" }, "Run"), feed.problem ? trouble(feed.problem) : h("p", { class: "empty" }, "Loading …")];
    const parts = { "": () => this.overview(), charts: () => this.charts(), events: () => this.events(), live: () => this.live(), checks: () => this.checks() };
    return [head(feed, { tab: this.tab }), h("div", { key: `tab-${this.tab}`, class: "part" }, (parts[this.tab] ?? parts[""])())];
  }

  overview() {
    const { doc } = this.feed;
    return [
      this.outcome(doc),
      this.figures(doc),
      this.questions(doc),
      doc.current.length || doc.waiting || doc.paused_since || this.feed.isLive ? this.now(doc) : null,
      this.stories(doc),
      this.timeline(doc),
      this.latest(),
      this.notes(doc),
    ];
  }

  outcome(doc) {
    const lines = [
      doc.damage && h("p", null, h("strong", null, "The journal is damaged. "), doc.damage),
      !this.feed.isLive && doc.why && h("p", null, h("strong", null, prose(doc.why))),
      !this.feed.isLive && doc.detail && doc.detail !== doc.why && !doc.why?.includes(doc.detail) && !Object.keys(doc.questions).length && h("p", null, doc.detail),
      !this.feed.isLive && doc.next && h("p", null, "Next: ", prose(doc.next)),
    ].filter(Boolean);
    const tone = doc.damage || doc.standing === "unfinished" ? "bad" : doc.reason === "complete" ? "good" : "warn";
    return lines.length ? h("div", { key: "outcome", class: `callout ${tone}` }, lines) : null;
  }

  /** What was claimed, what was proved, what it cost. */
  figures(doc) {
    const grades = Object.entries(doc.grades);
    const limit = doc.limits[0];
    const took = (this.feed.isLive ? this.feed.now : doc.seen) - doc.started;
    return h("section", { key: "figures", class: "figures", "aria-label": "Figures" },
      facts([
        fact("done", `${doc.done}/${doc.total}`, bar(doc.done, doc.total, "stories done")),
        fact("proof", grades.length ? h("span", { class: "chips" }, grades.map(([grade, count]) => h("span", { class: "graded" }, `${count} `, gradeChip(grade)))) : "none yet"),
        fact("iterations", String(doc.iterations)),
        fact("accepted", percent(doc.acceptance_rate), plural(doc.accepted, "iteration")),
        fact("cost", money(doc.cost_usd, doc.is_estimated, doc.unknown_costs), doc.is_estimated ? "partly estimated" : doc.unknown_costs ? `${plural(doc.unknown_costs, "session")} of unknown cost` : ""),
        fact("tokens", tokens(doc.tokens_total), `${tokens(doc.tokens?.output ?? 0)} written`),
        fact("time", duration(took), `agents ${duration(doc.agent_seconds + (this.feed.now - doc.now) * doc.agents_running)}`),
        limit ? fact("next limit", limitText(limit), h("span", null, limit.what, bar(Math.min(limit.used, limit.most), limit.most, limit.what)), doc.limits.map((each) => `${each.what}: ${limitText(each)}`).join("\n")) : null,
      ]));
  }

  questions(doc) {
    const asked = Object.entries(doc.questions);
    if (!asked.length) return null;
    return h("section", { key: "questions", "aria-labelledby": "questions" }, h("h2", { id: "questions" }, "Waiting for you"),
      h("ul", { class: "waiting" }, asked.map(([story, text]) => h("li", { key: story, class: "wait question" },
        h("p", null, icon("ask"), " ", h("a", { href: storyLink(doc.run, story) }, story), " asks"),
        h("p", { class: "said" }, text), doc.read_only ? null : acts.answerBox(doc.run, story)))));
  }

  now(doc) {
    const { now } = this.feed;
    const idle = doc.paused_since ? `Paused for ${duration(now - doc.paused_since)}.`
      : doc.waiting ? `${doc.waiting.why}: waits until ${clock(doc.waiting.until)}, in ${duration(doc.waiting.until - now)}.`
        : doc.current.length ? "" : "Between two iterations.";
    const busy = new Set(doc.current.map((each) => each.worker));
    const others = doc.workers.filter((each) => !busy.has(each.worker) && each.state !== "working");
    return h("section", { key: "now", "aria-labelledby": "now" }, h("h2", { id: "now" }, "Now"),
      idle ? h("p", { class: "empty" }, idle) : null,
      doc.current.length ? h("div", { class: "cards" }, doc.current.map((each) => h("article", { key: each.iteration, class: "card now" },
        h("div", { class: "row" }, h("h3", null, each.story ? h("a", { href: storyLink(doc.run, each.story) }, each.story) : h("a", { href: runLink(doc.run, `attempt/${each.iteration}`) }, each.mode), " ", h("span", { class: "plainly" }, each.title)),
          doc.workers.length ? h("span", { class: "chip plain" }, `worker ${each.worker || "–"}`) : null),
        h("p", { class: "doing" }, h("span", { class: "pulse", "aria-hidden": "true" }), `${each.mode}: ${each.phase}`),
        h("p", { class: "soft" }, between([`iteration ${each.iteration}`, each.attempt > 1 && `attempt ${each.attempt}`, duration(now - each.since), each.tokens && `${tokens(each.tokens)} tokens`,
          each.cost_usd !== null && each.cost_usd !== undefined && money(each.cost_usd, each.is_estimated)])),
        this.glimpse(each.iteration)))) : null,
      others.length ? h("p", { class: "soft" }, `Other workers: ${others.map((each) => `${each.worker} ${each.state}`).join(", ")}`) : null,
      doc.queue.length ? h("div", { key: "queue" }, h("h3", null, "Merge queue"), h("ol", { class: "queue" }, doc.queue.map((each) =>
        h("li", { key: each.iteration }, h("a", { href: storyLink(doc.run, each.story) }, each.story), ` ${each.state}${each.why ? `: ${each.why}` : ""}`)))) : null);
  }

  /** The last lines of a session, where there is one. */
  glimpse(iteration) {
    const entries = this.feed.live.get(iteration)?.entries ?? [];
    if (!entries.length) return null;
    return [h("ul", { key: "glimpse", class: "glimpse" }, entries.slice(-4).map((entry) => h("li", { key: entry.number }, entry.tool ? h("b", null, `${entry.tool} `) : null, entry.text.slice(0, 300)))),
      h("a", { href: runLink(this.feed.id, "live") }, "Everything it says")];
  }

  stories(doc) {
    const wanted = this.filter.toLowerCase();
    const found = doc.stories.filter((each) => !wanted || `${each.id} ${each.title} ${each.state} ${each.grade}`.toLowerCase().includes(wanted));
    const columns = [
      { name: "Story", cell: (each) => h("a", { class: "story", href: storyLink(doc.run, each.id) }, h("b", null, each.id), " ", h("span", null, each.title)) },
      { name: "State", cell: (each) => [stateChip(each.state), each.why ? h("small", { class: "why", title: each.why }, each.why) : null] },
      { name: "Proof", cell: (each) => gradeChip(each.grade) },
      { name: "Findings", class: "number", cell: (each) => (each.open_findings ? `${each.open_findings} open` : null) },
      { name: "Attempts", class: "number", cell: (each) => String(each.attempts) },
      { name: "Time", class: "number", cell: (each) => (each.seconds ? duration(each.seconds) : null) },
      { name: "Tokens", class: "number", cell: (each) => (each.tokens ? tokens(each.tokens) : null) },
      { name: "Cost", class: "number", cell: (each) => (each.cost_usd === null ? null : money(each.cost_usd, each.is_estimated)) },
    ];
    return h("section", { key: "stories", "aria-labelledby": "stories" },
      h("div", { class: "row" }, h("h2", { id: "stories" }, "Stories ", h("span", { class: "count" }, doc.stories.length)),
        doc.stories.length > 10 ? h("label", { class: "field" }, h("span", null, "Filter"), h("input", { type: "search", id: "search", oninput: (event) => {
          this.filter = event.target.value;
          this.app.redraw();
        } })) : null),
      table("Stories with their proof and cost", columns, found.slice(0, this.most), { key: (each) => each.id, empty: "No story matches." }),
      found.length > this.most ? h("button", { type: "button", class: "act", onclick: () => {
        this.most = Infinity;
        this.app.redraw();
      } }, `Show all ${found.length} stories`) : null,
      fold("grades", "What the proofs mean", h("dl", { class: "meaning" }, Object.entries(MEANING).map(([grade, text]) => [h("dt", null, gradeChip(grade)), h("dd", null, text)]))));
  }

  get version() {
    const { doc } = this.feed;
    return `${doc.attempts.length} ${doc.iterations} ${doc.done} ${doc.current.map((each) => each.phase.replace(/\(.*/, "")).join()} ${this.feed.isLive ? Math.floor(Date.now() / 10000) : doc.standing}`;
  }

  chart(name, title, note, more = {}) {
    return chart({ key: name, path: server.chartOf(this.feed.id, name, this.app.theme), version: this.version, title, note, ...more });
  }

  timeline(doc) {
    return h("section", { key: "timeline", "aria-labelledby": "timeline" }, h("h2", { id: "timeline" }, "Timeline"),
      this.chart("gantt", "Work, reviews, checks and waits over time", "", { least: 560, pick: (number) => this.app.go(this.linkTo(number)), alternative:
        fold("as-table", "The iterations as a table", this.iterations(doc)) }));
  }

  linkTo(number) {
    const attempt = this.feed.doc.attempts.find((each) => each.iteration === number);
    return attempt?.story ? `${storyLink(this.feed.id, attempt.story)}/${number}` : runLink(this.feed.id, `attempt/${number}`);
  }

  /** Every iteration in a line: also the text alternative of the charts. */
  iterations(doc) {
    let cost = null; // until one is known
    let used = 0;
    const rows = doc.attempts.map((each) => {
      if (each.cost_usd !== null) cost = (cost ?? 0) + each.cost_usd;
      used += each.tokens;
      return { ...each, cost, used };
    });
    const columns = [
      { name: "Iteration", cell: (each) => h("a", { href: this.linkTo(each.iteration) }, String(each.iteration)) },
      { name: "Story", cell: (each) => each.story || null },
      { name: "Mode", cell: (each) => each.mode },
      doc.workers.length ? { name: "Worker", class: "number", cell: (each) => (each.worker ? String(each.worker) : null) } : null,
      { name: "Verdict", cell: (each) => verdictChip(each.verdict) },
      { name: "Start", cell: (each) => time(each.since, clock) },
      { name: "Time", class: "number", cell: (each) => duration((each.until ?? this.feed.now) - each.since) },
      { name: "Tokens so far", class: "number", cell: (each) => tokens(each.used) },
      { name: "Cost so far", class: "number", cell: (each) => money(each.cost, false, each.cost === null ? doc.unknown_costs : 0) },
    ].filter(Boolean);
    return table("Iterations", columns, rows.slice(-500), { key: (each) => each.iteration, empty: "No iteration yet." });
  }

  latest() {
    const { tail } = this.feed;
    if (!tail.length) return null;
    return h("section", { key: "latest", "aria-labelledby": "latest" }, h("div", { class: "row" }, h("h2", { id: "latest" }, "Latest events"), h("a", { href: runLink(this.feed.id, "events") }, "All events")),
      h("ol", { class: "tail" }, tail.filter((each) => each.text).slice(-TAIL).map((each) =>
        h("li", { key: each.seq }, time(each.t, clock), h("span", null, each.text)))));
  }

  notes(doc) {
    return doc.notes.length ? h("section", { key: "notes", "aria-labelledby": "notes" }, h("h2", { id: "notes" }, "Notices"), h("ul", null, doc.notes.map((text) => h("li", null, prose(text))))) : null;
  }

  charts() {
    const { doc } = this.feed;
    const forecast = doc.forecast;
    return [
      h("h2", { class: "unseen" }, "Charts"),
      h("div", { key: "charts", class: "charts" },
        this.chart("stories", "Stories done", ""),
        this.chart("cost", "Cost", "in US dollars"),
        this.chart("tokens", "Tokens", ""),
        this.chart("acceptance", "Accepted iterations", ""),
        this.chart("forecast", "Forecast", this.feed.isLive && forecast?.stories ? `from ${plural(forecast.samples ?? 0, "finished story")} of this workspace; the band reaches from the median to the 90th percentile` : "")),
      fold("figures-table", "The figures as a table", this.iterations(doc)),
    ];
  }

  events() {
    const { id, doc } = this.feed;
    return [
      h("div", { key: "bar", class: "row" }, h("h2", null, "Events ", h("span", { class: "count" }, doc.count.toLocaleString("en"))),
        h("div", { class: "acts" },
          h("button", { type: "button", class: "act", onclick: () => this.rows.activate(0) }, "First"),
          h("button", { type: "button", class: "act", onclick: () => {
            this.rows.activate(this.rows.total - 1);
            this.rows.isFollowing = true;
          } }, "Latest"))),
      h("p", { key: "how", class: "soft" }, "Choose a line, with the arrow keys too, to see all of it below."),
      h("div", { key: "rows", class: "rows", id: "rows", own: true, mount: (node) => {
        this.rows = new Rows(node, {
          label: "Events", columns: 4, fetch: (start, count) => server.events(id, start, count), fill: fillEvent,
          pick: (item) => {
            this.picked = item;
            this.app.redraw();
          },
        });
      }, update: () => queueMicrotask(() => this.rows.grow(this.feed.doc.count)) }),
      h("div", { key: "picked", class: "picked", "aria-live": "polite" }, this.picked ? [
        h("p", { class: "soft" }, between([`event ${this.picked.seq}`, this.picked.kind, moment(this.picked.t), this.picked.iteration && `iteration ${this.picked.iteration}`])),
        pre(this.picked.text || "This event has no text.", "The chosen event", "wrapped")] : null),
    ];
  }

  live() {
    const { doc, live } = this.feed;
    const known = new Map(doc.attempts.map((each) => [each.iteration, each]));
    const parts = [...live.values()].sort((a, b) => a.iteration - b.iteration);
    if (!parts.length) return [h("h2", { class: "unseen" }, "Live"), h("p", { class: "empty" }, this.feed.isLive ? "No agent is at work at this moment." : "The run has ended. The transcript of each session is on the page of its story.")];
    return [h("h2", { class: "unseen" }, "Live"), parts.map((part) => h("section", { key: part.iteration, class: "session" },
      h("div", { class: "row" }, h("h3", null, between([h("a", { href: this.linkTo(part.iteration) }, part.story || known.get(part.iteration)?.mode || "session"), known.get(part.iteration)?.mode])),
        h("span", { class: "soft" }, between([part.tokens && `${tokens(part.tokens)} tokens`, part.cost_usd !== null && part.cost_usd !== undefined && money(part.cost_usd, true)]))),
      h("div", { key: "said", class: "said-list", tabindex: "0", role: "region", "aria-label": `What the agent of ${part.story || "this iteration"} says`,
        mount: (node) => queueMicrotask(() => (node.scrollTop = node.scrollHeight)), update: follow }, part.entries.map(said))))];
  }

  checks() {
    if (this.problem) return h("p", { class: "callout bad" }, this.problem.message);
    if (!this.ofRun) return h("p", { class: "empty" }, "Loading …");
    const words = { baseline: "Before the first story", final: "At the end, on the final commit" };
    const groups = Object.keys(words).filter((when) => this.ofRun.some((each) => each.when === when));
    return [h("h2", { class: "unseen" }, "Checks of the run"),
      groups.length ? groups.map((when) => h("section", { key: when }, h("h3", null, words[when]),
        checkList(this.ofRun.filter((each) => each.when === when), (index) => server.checkOutput(this.feed.id, 0, index), this.app))) : h("p", { class: "empty" }, "No check has run yet outside an iteration."),
      h("p", { class: "soft" }, "The checks of an attempt are on the page of its story.")];
  }
}

function follow(node) {
  const isAtEnd = node.scrollTop + node.clientHeight >= node.scrollHeight - 60;
  if (isAtEnd) queueMicrotask(() => (node.scrollTop = node.scrollHeight));
}

function limitText(limit) {
  const texts = {
    seconds: (value) => duration(value), usd: (value) => `$${value.toFixed(2)}`, tokens, share: (value) => `${Math.round(value * 100)}%`,
    iterations: String, times: String,
  };
  const text = texts[limit.unit] ?? String;
  return limit.unit === "share" ? text(limit.used) : `${text(limit.used)} of ${text(limit.most)}`;
}

function fillEvent(row, item) {
  const cells = [[String(item.seq), "seq"], [clock(item.t), "clock"], [item.kind, "kind"], [item.text.replaceAll("\n", " · ") || "–", "text"]];
  row.classList.toggle("quiet", !item.text);
  for (const [text, name] of cells) {
    const cell = document.createElement("span");
    cell.setAttribute("role", "gridcell");
    cell.className = name;
    cell.textContent = text;
    row.append(cell);
  }
}

const outputs = new Map(); // where a whole output was asked for → what came back

/** Checks, failing first, with their output. `load` fetches the whole output of one. */
export function checkList(lines, load, app) {
  const sorted = [...lines].sort((a, b) => a.result.passed - b.result.passed);
  return h("div", { class: "checks" }, sorted.map(({ index, when, result, at }) => {
    const key = `${app.route} ${index} ${at}`;
    const whole = outputs.get(key);
    const label = h("span", { class: "row" }, resultChip(result), h("b", null, result.name), h("span", { class: "soft" }, between([when && WHEN[when], seconds(result.seconds), result.timed_out && "timed out",
      result.failed_before && "failed before this change too", result.proves && `proves ${result.proves}`, countsOf(result.tests)])));
    const load1 = async () => {
      try {
        outputs.set(key, await load(index));
      } catch (error) {
        acts.tell(error.message, "bad", error.hint);
      }
      app.redraw();
    };
    return fold(`check-${index}`, label, [
      h("p", null, h("span", { class: "soft" }, "command "), h("code", null, result.command), result.code !== null && result.code !== undefined ? h("span", { class: "soft" }, ` · exit code ${result.code}`) : null),
      result.hint ? h("p", { class: "callout warn" }, prose(result.hint)) : null,
      result.failed?.length ? [h("p", { class: "soft" }, "Failing tests"), h("ul", { class: "names" }, result.failed.map((name) => h("li", null, name)))] : null,
      whole ? pre(whole.output || "no output", `Output of ${result.name}`) : pre(result.tail || "no output is recorded", `End of the output of ${result.name}`),
      whole && !whole.is_whole ? h("p", { class: "soft" }, "Only a part of the output is available.") : null,
      result.output && !whole ? h("button", { type: "button", class: "act", onclick: load1 }, "Show the whole output") : null,
    ], { isOpen: !result.passed, name: `fold check ${result.passed ? "" : "failing"}` });
  }));
}

const WHEN = { baseline: "before the work", checkout: "in a clean checkout", story: "with the change", proof: "for the proof", final: "on the final commit" };
const countsOf = (tests) => tests && between([tests.passed && `${tests.passed} passed`, tests.failed && `${tests.failed} failed`, tests.skipped && `${tests.skipped} skipped`], ", ").join("");

// One story: every attempt with what was claimed, what was proved and what it cost; the newest first.

import * as acts from "./acts.js";
import { between, h, patch as patchInto } from "./dom.js";
import { clock, duration, fateChip, gradeChip, icon, money, moment, plural, prose, seconds, stateChip, time, tokens, totalOf, verdictChip, MEANING } from "./format.js";
import { fact, facts, fold, pre, trouble } from "./parts.js";
import { checkList, head, runLink, storyLink } from "./run.js";
import * as server from "./server.js";
import { Transcript } from "./transcript.js";

const LINES = 1500;
const CLAIMS = { done: "the story is done", "already-satisfied": "the story was already done" };

/** A story with its attempts, or one iteration that belongs to no story. */
export class Story {
  constructor(app, feed, story, wanted = 0) {
    Object.assign(this, { app, feed, story, wanted, transcripts: new Map(), diffs: new Map(), most: new Map(), found: null, known: "" });
  }

  get title() {
    return this.story || `Iteration ${this.wanted}`;
  }

  start() {
    this.onActed = () => this.load();
    document.addEventListener("acted", this.onActed);
  }

  stop() {
    document.removeEventListener("acted", this.onActed);
    clearTimeout(this.timer);
  }

  get isLive() {
    return this.feed.isLive;
  }

  /** What the stream says about this story; when it changes, the story is asked for again. */
  get version() {
    const { doc } = this.feed;
    return JSON.stringify([
      doc.stories.find((each) => each.id === this.story), doc.questions[this.story], doc.standing,
      doc.attempts.filter((each) => (this.story ? each.story === this.story : each.iteration === this.wanted)).map((each) => [each.iteration, each.verdict, each.commit]),
      doc.current.filter((each) => each.story === this.story).map((each) => [each.iteration, each.phase.replace(/[:(].*/, "")]),
    ], (name, value) => (name === "seconds" || name === "tokens" || name === "cost_usd" ? undefined : value));
  }

  refresh() {
    const { version } = this;
    if (version === this.known || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.known = version;
      this.load();
    }, this.known ? 400 : 0);
  }

  async load() {
    try {
      if (this.story) this.found = await server.story(this.feed.id, this.story);
      else this.found = { story: null, findings: [], acts: [], attempts: [await server.attempt(this.feed.id, this.wanted)] };
      this.problem = null;
    } catch (error) {
      this.problem = error;
    }
    this.app.redraw();
  }

  render() {
    const { feed } = this;
    if (!feed.doc) return [h("h1", { tabindex: "-1" }, this.title), feed.problem ? trouble(feed.problem) : h("p", { class: "empty" }, "Loading …")];
    this.refresh();
    const top = head(feed, { crumb: this.title });
    if (this.problem && !this.found) return [top, h("h1", { tabindex: "-1" }, this.title), trouble(this.problem, runLink(feed.id), "All stories of this run")];
    if (!this.found) return [top, h("h1", { tabindex: "-1" }, this.title), h("p", { class: "empty" }, "Loading …")];
    const attempts = [...this.found.attempts].reverse();
    const open = this.wanted || attempts[0]?.iteration;
    return [
      top,
      this.head(this.found.story, attempts),
      this.findings(),
      h("section", { key: "attempts", "aria-labelledby": "attempts" },
        this.found.story ? h("h2", { id: "attempts" }, "Attempts ", h("span", { class: "count" }, attempts.length)) : h("h2", { id: "attempts", class: "unseen" }, "Iteration"),
        attempts.length ? attempts.map((each) => this.attempt(each, each.iteration === open)) : h("p", { class: "empty" }, "Nobody has worked on this story in this run.")),
    ];
  }

  head(story, attempts) {
    if (!story) {
      const [attempt] = attempts;
      return h("div", { key: "head", class: "head" }, h("h1", { tabindex: "-1" }, `Iteration ${attempt.iteration}: ${attempt.mode} ${attempt.title}`), verdictChip(attempt.verdict));
    }
    const { doc, id } = this.feed;
    const can = (verb) => this.found.acts.includes(verb);
    const question = doc.questions[story.id];
    return h("div", { key: "head", class: "storyhead" },
      h("div", { class: "head" }, h("h1", { tabindex: "-1" }, h("span", { class: "mono" }, story.id), " ", story.title), stateChip(story.state), gradeChip(story.grade)),
      story.grade ? h("p", { class: "soft" }, `${story.grade}: ${MEANING[story.grade] ?? ""}`) : null,
      acts.readOnlyNote(doc.read_only),
      story.why && !story.is_asking ? h("p", { class: `callout ${story.state === "failed" ? "bad" : "warn"}` }, story.why) : null,
      question !== undefined ? h("div", { class: "wait question" }, h("p", null, icon("ask"), " The agent asks"), h("p", { class: "said" }, question),
        can("answer") ? acts.answerBox(id, story.id) : null) : null,
      facts([
        fact("attempts", String(story.attempts)), fact("time", duration(story.seconds)), fact("tokens", tokens(story.tokens)),
        fact("cost", money(story.cost_usd, story.is_estimated)),
        story.depends_on.length ? fact("depends on", h("span", { class: "chips" }, story.depends_on.map((name) => h("a", { href: storyLink(id, name) }, name)))) : null,
      ]),
      h("div", { class: "acts" },
        can("retry") ? acts.button({ run: id, verb: "retry", label: "Retry", tone: "main", onclick: () => acts.perform(id, { verb: "retry", story: story.id }) }) : null,
        can("skip") ? acts.button({ run: id, verb: "skip", label: "Skip …", onclick: () => acts.skip(id, story.id) }) : null,
        can("note") ? acts.button({ run: id, verb: "note", label: "Note …", onclick: () => acts.note(id, story.id) }) : null),
      h("ul", { class: "sent" }, acts.sentTo(id, story.id).map(({ message, t }) => h("li", { key: t }, icon("check"), " ", prose(message), " ", h("span", { class: "soft" }, clock(t))))));
  }

  findings() {
    const { findings } = this.found;
    if (!findings?.length) return null;
    const { id, doc } = this.feed;
    const order = ["open", "fixed", "rejected", "closed"];
    const sorted = [...findings].sort((a, b) => order.indexOf(a.fate) - order.indexOf(b.fate));
    return h("section", { key: "findings", "aria-labelledby": "findings" }, h("h2", { id: "findings" }, "Review findings ", h("span", { class: "count" }, findings.length)),
      h("ul", { class: "findings" }, sorted.map((entry) => h("li", { key: entry.id, class: `finding ${entry.fate}` },
        h("div", { class: "row" }, h("p", null, h("b", { class: "mono" }, entry.id), " ", fateChip(entry.fate, entry.by_user), entry.finding.severity ? h("span", { class: "chip plain" }, entry.finding.severity) : null),
          h("span", { class: "soft" }, between([entry.reviewer && `by ${entry.reviewer}`, entry.review && `review ${entry.review}`]))),
        h("p", { class: "said" }, entry.finding.text),
        entry.finding.place ? h("p", null, h("code", null, entry.finding.place)) : null,
        entry.finding.criterion ? h("p", { class: "soft" }, `criterion: ${entry.finding.criterion}`) : null,
        entry.finding.evidence ? h("div", null, h("p", { class: "soft" }, "Evidence"), pre(entry.finding.evidence, `Evidence of ${entry.id}`, "wrapped")) : null,
        entry.reason ? h("p", null, h("span", { class: "soft" }, entry.by_user ? "your reason: " : "reason: "), entry.reason) : null,
        doc.read_only ? null : h("div", { class: "acts" }, verdictsOn(entry).map(([verb, label]) =>
          acts.button({ run: `${id}-${entry.id}`, verb, label: `${label} ${entry.id} …`, onclick: () => acts.decide(id, this.story, entry.id, verb) })))))));
  }

  attempt(attempt, isOpen) {
    const took = attempt.until ? attempt.seconds : this.feed.now - attempt.since;
    const label = h("span", { class: "attempt-line" },
      h("span", { class: "row" }, h("b", null, `${attempt.iteration}. ${attempt.mode}`), attempt.number > 1 ? h("span", { class: "soft" }, `attempt ${attempt.number}`) : null,
        verdictChip(attempt.verdict), gradeChip(attempt.grade)),
      h("span", { class: "headline" }, attempt.headline || (attempt.verdict ? "" : "under way")),
      h("span", { class: "soft" }, between([moment(attempt.since), duration(took), attempt.cost_usd === null ? null : money(attempt.cost_usd, attempt.is_estimated), attempt.worker ? `worker ${attempt.worker}` : null])));
    return h("article", { key: attempt.iteration, class: "attempt", id: `attempt-${attempt.iteration}`, "aria-label": `Iteration ${attempt.iteration}: ${attempt.mode}`,
      mount: this.wanted === attempt.iteration ? (node) => requestAnimationFrame(() => node.scrollIntoView()) : undefined },
    fold("all", label, [
      this.columns(attempt, took),
      this.reasons(attempt),
      this.proof(attempt),
      this.section("Checks", attempt.checks, (list) => checkList(list, (index) => server.checkOutput(this.feed.id, attempt.iteration, index), this.app)),
      this.review(attempt),
      this.refused(attempt),
      this.diff(attempt),
      this.commit(attempt),
      this.transcript(attempt),
    ], { isOpen, name: "fold attempt-fold" }));
  }

  /** The three columns of evidence. */
  columns(attempt, took) {
    const proof = attempt.proof;
    const passed = attempt.checks.filter((each) => each.result.passed).length;
    const session = attempt.sessions[attempt.sessions.length - 1];
    const claimed = attempt.mode === "review" ? `verdict: ${(attempt.answer ?? (attempt.verdict === "accepted" ? attempt.headline.split(":", 1)[0] : "none")).replaceAll("_", " ")}` : attempt.question ? "a question" : CLAIMS[attempt.claim] ?? (attempt.verdict ? "nothing" : "nothing yet");
    return h("div", { key: "columns", class: "evidence" },
      h("div", null, h("h3", null, "Claimed"), h("p", { class: "sum" }, claimed),
        attempt.question ? h("p", { class: "said" }, attempt.question) : null,
        attempt.said ? fold("said", "The agent's last words", h("div", { class: "whole" }, attempt.said), { isOpen: attempt.said.length < 400 }) : null,
        attempt.changed.length ? fold("changed", `${plural(attempt.changed.length, "file")} changed`, h("ul", { class: "names" }, attempt.changed.map((name) => h("li", null, name)))) : h("p", { class: "soft" }, "no files changed"),
        attempt.notes.length ? fold("notes", `${plural(attempt.notes.length, "note")} from you in the prompt`, h("ul", null, attempt.notes.map((text) => h("li", null, text)))) : null),
      h("div", null, h("h3", null, "Proved"), h("p", { class: "sum" }, verdictChip(attempt.verdict), " ", gradeChip(attempt.grade)),
        attempt.checks.length ? h("p", null, icon(passed === attempt.checks.length ? "check" : "cross"), ` ${passed} of ${plural(attempt.checks.length, "check")} passed`) : h("p", { class: "soft" }, "no checks ran"),
        proof ? h("p", null, icon(proof.witnesses.length ? "eye" : "dashed"), proof.witnesses.length ? ` ${plural(proof.witnesses.length, "witness").replace(/witnesss$/, "witnesses")}` : " no witness") : null,
        proof ? h("p", null, icon(proof.changed_expectations.length ? "warn" : "check"), ` ${oldTests(proof)}`) : null,
        attempt.merged ? h("p", null, icon(attempt.merged.passed ? "check" : "cross"), attempt.merged.passed ? ` proven on the merged tree (${seconds(attempt.merged.seconds)})` : ` failed on the merged tree: ${attempt.merged.why}`) : null),
      h("div", null, h("h3", null, "Cost"), h("p", { class: "sum" }, money(attempt.cost_usd, attempt.is_estimated, attempt.is_unknown ? 1 : 0)),
        h("p", null, between([duration(took), `${tokens(totalOf(attempt.tokens))} tokens`])),
        session ? h("p", { class: "soft" }, between([session.agent, session.model, session.turns && plural(session.turns, "turn"), session.tools && plural(session.tools, "call")])) : null,
        session?.detail ? h("p", { class: "soft" }, session.detail) : null,
        attempt.choice ? h("p", { class: "soft" }, attempt.choice) : null));
  }

  section(name, list, content) {
    return list?.length ? h("section", { key: name }, h("h3", null, name, " ", h("span", { class: "count" }, list.length)), content(list)) : null;
  }

  reasons(attempt) {
    const rows = [...attempt.reasons, ...attempt.objections.filter((each) => !attempt.reasons.includes(each))];
    return [
      rows.length ? h("section", { key: "reasons" }, h("h3", null, "Reasons"), h("ul", { class: "reasons" }, rows.map((text) => h("li", null, text)))) : null,
      attempt.notices.length ? h("section", { key: "notices" }, h("h3", null, "Notices"), h("ul", null, attempt.notices.map((text) => h("li", null, prose(text))))) : null,
    ];
  }

  proof(attempt) {
    const proof = attempt.proof;
    if (!proof) return null;
    const list = (key, title, texts, note = "") => (texts.length ? h("div", { key }, h("h4", null, title), note ? h("p", { class: "soft" }, note) : null, h("ul", { class: "names" }, texts.map((text) => h("li", null, text)))) : null);
    return h("section", { key: "proof" }, h("h3", null, "Proof"),
      h("p", { class: "soft" }, between([proof.where === "checkout" ? "in a clean checkout" : "in the workspace", proof.tree && h("span", null, "tree ", h("code", null, proof.tree.slice(0, 9)))])),
      proof.witnesses.length
        ? h("div", { key: "witness" }, h("h4", null, icon("eye"), " Witness"), h("p", { class: "soft" }, "fails without the change, passes with it"),
          h("ul", { class: "names" }, proof.witnesses.map((each) => h("li", null, each.name, " ", each.is_own ? h("span", { class: "chip good" }, "the story's own") : null))))
        : list("missing", "No witness. One of these would be one", proof.missing),
      h("div", { key: "old" }, h("h4", null, icon(proof.changed_expectations.length ? "warn" : "check"), " The tests as they were"),
        h("p", null, oldTests(proof)),
        proof.restored.length ? fold("restored", `${plural(proof.restored.length, "file")} put back for that pass`, h("ul", { class: "names" }, proof.restored.map((name) => h("li", null, name)))) : null,
        list("changed", "Changed expectations", proof.changed_expectations, proof.excuse ? `legitimate: ${proof.excuse}` : "the checks pass only with these changes: a review has to approve them"),
        proof.old_output ? pre(proof.old_output, "Output of the checks with the tests as they were") : null),
      list("loosened", "Changed although the checks pass without it", proof.loosened),
      list("objections", "Objections", proof.objections),
      list("limits", "Not examined", proof.limits));
  }

  review(attempt) {
    if (!attempt.findings.length && !attempt.replies.length) return null;
    return h("section", { key: "review" }, h("h3", null, "Review"),
      attempt.findings.length ? h("ul", { class: "names" }, attempt.findings.map((each) => h("li", null, between([each.id, each.severity && `[${each.severity}]`, each.place], " ").concat([" ", each.text])))) : null,
      attempt.replies.length ? [h("h4", null, "Answers of the fix"), h("ul", { class: "names" }, attempt.replies.map((each) => h("li", null, h("b", null, each.id), " ", fateChip(each.fate), " ", each.reason)))] : null);
  }

  refused(attempt) {
    return this.section("Refused", attempt.refused, (list) => h("ul", { class: "names" }, list.map((text) => h("li", null, text))));
  }

  commit(attempt) {
    if (!attempt.commit && !attempt.rescue) return null;
    const trailers = Object.entries(attempt.trailers ?? {});
    return h("section", { key: "commit" }, h("h3", null, attempt.commit ? "Commit" : "Kept work"),
      attempt.commit ? h("p", null, h("code", null, attempt.commit.slice(0, 12)), " ", attempt.message.split("\n", 1)[0]) : null,
      attempt.rescue ? h("p", null, "rolled back, and kept as ", h("code", null, attempt.rescue), prose("; `ralph rescue` brings it back")) : null,
      trailers.length ? fold("trailers", plural(trailers.length, "trailer"), h("dl", { class: "trailers" }, trailers.map(([name, values]) => [h("dt", null, name), h("dd", null, values.join(", "))]))) : null);
  }

  transcript(attempt) {
    if (!attempt.sessions.length) return null;
    const number = attempt.iteration;
    return lazy("transcript", h("b", null, "Transcript"), () => {
      if (!this.transcripts.has(number)) this.transcripts.set(number, new Transcript(this.app, this.feed.id, number, attempt.sessions));
    }, () => this.transcripts.get(number)?.render());
  }

  diff(attempt) {
    if (!attempt.changed.length && !attempt.commit && !attempt.rescue && !attempt.tree) return null;
    const number = attempt.iteration;
    const load = async () => {
      const version = `${attempt.commit} ${attempt.rescue} ${attempt.tree}`;
      if (this.diffs.get(number)?.version === version) return;
      this.diffs.set(number, { version });
      try {
        this.diffs.set(number, { version, diff: await server.diff(this.feed.id, number) });
      } catch (error) {
        this.diffs.set(number, { problem: error });
      }
      this.app.redraw();
    };
    return lazy("diff", h("b", null, "Changes"), load, () => this.files(number));
  }

  files(number) {
    const { diff, problem } = this.diffs.get(number) ?? {};
    if (problem) return h("p", { class: "callout bad" }, problem.message);
    if (!diff) return h("p", { class: "empty" }, "Loading …");
    if (diff.why_not) return h("p", { class: "empty" }, diff.why_not);
    let room = 400;
    return [h("p", { class: "soft" }, between([diff.of, plural(diff.files.length, "file"), diff.is_cut && "cut: it is too long to show in full"])),
      [...diff.files].sort((a, b) => isOurs(a) - isOurs(b)).map((file) => {
        const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
        const isOpen = room > 0 && lines < 800;
        room -= lines;
        const key = `${number} ${file.path}`;
        const label = h("span", { class: "row" }, h("code", { class: "path" }, file.path), h("span", { class: "soft" }, file.status),
          h("span", { class: "plus" }, `+${file.added}`), h("span", { class: "minus" }, `−${file.removed}`));
        return lazy(key, label, () => {}, () => (file.hunks.length ? this.lines(file, key) : h("p", { class: "empty" }, "no lines to show")), isOpen, "fold file");
      })];
  }

  lines(file, key) {
    const most = this.most.get(key) ?? LINES;
    const isWide = this.app.isWide;
    const rows = [];
    let left = most;
    for (const [at, hunk] of file.hunks.entries()) {
      if (left <= 0) break;
      rows.push(h("tr", { key: `h${at}`, class: "hunk" }, h("td", { colspan: isWide ? "4" : "3" }, hunk.head)));
      const lines = hunk.lines.slice(0, left);
      left -= lines.length;
      rows.push(...(isWide ? sideBySide(lines) : unified(lines)));
    }
    const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
    return [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Changes in ${file.path}` },
      h("table", { key: isWide ? "wide" : "narrow", class: `diff ${isWide ? "wide" : ""}` },
        h("colgroup", null, ["at", isWide ? "" : "at", isWide ? "at" : "", isWide ? "" : null].filter((name) => name !== null).map((name) => h("col", { class: name }))),
        h("thead", { class: "unseen" }, h("tr", null, (isWide ? ["line before", "before", "line after", "after"] : ["line before", "line after", "text"]).map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, rows))),
    total > most ? h("button", { type: "button", class: "act", onclick: () => {
      this.most.set(key, most + 5 * LINES);
      this.app.redraw();
    } }, `Show more of ${total.toLocaleString("en")} lines`) : null];
  }
}

/** A fold whose content is made only while it is open. */
function lazy(key, label, load, content, isOpen = false, name = "fold big") {
  return h("details", { key, class: name, open: isOpen, mount: (node) => {
    node.isOpened = isOpen;
    if (isOpen) load();
  }, ontoggle: (event) => {
    if (event.target !== event.currentTarget || !event.target.open) return;
    event.target.isOpened = true;
    load();
    document.dispatchEvent(new CustomEvent("stale"));
  } }, h("summary", null, label), h("div", { own: true, update: (node) => {
    if (node.parentElement?.isOpened || isOpen) patchInto(node, content());
  } }));
}

const verdictsOn = (entry) => [["confirm", "Confirm"], ["reject", "Reject"]].filter(([verb]) =>
  verb === "reject" ? !["rejected", "closed"].includes(entry.fate) : !(entry.by_user && ["open", "fixed"].includes(entry.fate)));

const oldTests = (proof) => {
  if (proof.changed_expectations.length) return proof.excuse ? "the old tests fail, as the story asks for" : "the old tests fail";
  return proof.restored.length ? "the old tests pass too" : "no test or its set-up was touched";
};

const isOurs = (file) => /^\.?ralph\//.test(file.path); // the plan, which changes with every story

const SIGNS = { "+": "added", "-": "removed" };
const cell = (sign, text) => h("td", { class: SIGNS[sign] ?? "" }, h("span", { class: "sign" }, sign === "-" ? "−" : sign), text);

function unified(lines) {
  return lines.map(([sign, old, now, text]) => h("tr", null, h("td", { class: "at" }, old || ""), h("td", { class: "at" }, now || ""), cell(sign, text)));
}

/** Removed lines stand beside the added ones that follow them. */
function sideBySide(lines) {
  const rows = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      const [a, b] = [removed[at], added[at]];
      rows.push(h("tr", null, h("td", { class: "at" }, a?.[1] || ""), a ? cell("-", a[3]) : h("td", { class: "none" }), h("td", { class: "at" }, b?.[2] || ""), b ? cell("+", b[3]) : h("td", { class: "none" })));
    }
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line[0] === "-") {
      if (added.length) flush();
      removed.push(line);
    } else if (line[0] === "+") added.push(line);
    else {
      flush();
      rows.push(h("tr", null, h("td", { class: "at" }, line[1] || ""), cell(line[0], line[3]), h("td", { class: "at" }, line[2] || ""), cell(line[0], line[3])));
    }
  }
  flush();
  return rows;
}

// What an agent wrote and called, folded; a transcript in pages, with a search.

import { h } from "./dom.js";
import { icon, seconds } from "./format.js";
import { fold, pre } from "./parts.js";
import * as server from "./server.js";

const PAGE = 200;
const LONG = 900; // characters from which on a text is folded

/** One entry. Its text is an agent's: shown as it is, never followed. */
export function said(entry) {
  const cut = entry.is_cut ? h("p", { class: "soft" }, "Cut here; the raw log has all of it.") : null;
  const key = `${entry.number}`;
  if (entry.kind === "call") {
    const sign = entry.ok === true ? ["check", "good", "succeeded"] : entry.ok === false ? ["cross", "bad", "failed"] : ["dot", "plain", "no result"];
    const first = entry.text.split("\n", 1)[0].slice(0, 200);
    const label = h("span", { class: "call" }, h("span", { class: `sign ${sign[1]}`, title: sign[2] }, icon(sign[0]), h("span", { class: "unseen" }, sign[2])), " ", h("b", null, entry.tool || "call"), " ", h("code", null, first),
      entry.seconds === null || entry.seconds === undefined ? null : h("span", { class: "soft" }, ` ${seconds(entry.seconds)}`));
    if (!entry.answer && first === entry.text) return h("p", { key, class: "entry call" }, label);
    return fold(key, label, [first === entry.text ? null : pre(entry.text, `Call of ${entry.tool}`), entry.answer ? pre(entry.answer, `Result of ${entry.tool}`) : null, cut], { name: "entry call" });
  }
  if (entry.kind !== "text") return h("p", { key, class: `entry ${entry.kind === "result" ? "result" : "note"}` }, entry.text);
  if (entry.text.length <= LONG) return h("div", { key, class: "entry text" }, entry.text, cut);
  return fold(key, h("span", null, entry.text.slice(0, 240), " …"), [h("div", { class: "whole" }, entry.text), cut], { name: "entry text" });
}

/** The transcript of one session of an attempt; fetched page by page. */
export class Transcript {
  constructor(app, run, iteration, sessions) {
    Object.assign(this, { app, run, iteration, sessions, session: sessions.length - 1, search: "", entries: [], total: 0, source: "", isLoaded: false });
    this.load();
  }

  async load(start = 0) {
    const asked = (this.asked = {}); // only the last answer counts
    try {
      const page = await server.transcript(this.run, this.iteration, { session: Math.max(this.session, 0), start, count: PAGE, search: this.search });
      if (this.asked !== asked) return;
      this.entries = start ? [...this.entries, ...page.entries] : page.entries;
      this.total = page.total;
      this.source = page.source;
      this.problem = null;
    } catch (error) {
      this.problem = error;
    }
    this.isLoaded = true;
    this.app.redraw();
  }

  render() {
    const id = `transcript-${this.iteration}`;
    const left = this.total - this.entries.length;
    return h("div", { class: "transcript" },
      h("form", { class: "filter", role: "search", onsubmit: (event) => event.preventDefault() },
        this.sessions.length > 1 ? h("label", { class: "field" }, h("span", null, "Session"), h("select", { onchange: (event) => {
          this.session = Number(event.target.value);
          this.load();
        } }, this.sessions.map((each, at) => h("option", { key: at, value: String(at), selected: at === this.session || undefined }, `${at + 1}: ${each.step || each.agent}`)))) : null,
        h("label", { class: "field grow" }, h("span", null, "Search in the transcript"), h("input", { id, type: "search", oninput: (event) => {
          this.search = event.target.value;
          clearTimeout(this.timer);
          this.timer = setTimeout(() => this.load(), 250);
        } })),
        h("p", { class: "soft", role: "status" }, this.isLoaded ? `${this.total.toLocaleString("en")} ${this.search ? "found" : this.total === 1 ? "entry" : "entries"}` : "Loading …")),
      this.problem ? h("p", { class: "callout bad" }, this.problem.message) : null,
      h("div", { class: "said-list tall", tabindex: "0", role: "region", "aria-label": "Transcript" }, this.entries.map(said),
        this.isLoaded && !this.entries.length && !this.problem ? h("p", { class: "empty" }, this.search ? "Nothing contains this text." : "This session left no transcript.") : null),
      left > 0 ? h("button", { type: "button", class: "act", onclick: () => this.load(this.entries.length) }, `Show ${Math.min(PAGE, left)} more of ${left.toLocaleString("en")}`) : null,
      this.source ? h("p", { class: "soft" }, "From ", h("code", null, this.source)) : this.isLoaded && this.entries.length ? h("p", { class: "soft" }, "From the journal: the raw log is not here, so texts are shortened.") : null);
  }
}

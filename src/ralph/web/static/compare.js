// Two runs side by side.

import { h } from "./dom.js";
import { gradeChip, icon, moment, money, shortId, stateChip } from "./format.js";
import { chart, table, trouble } from "./parts.js";
import { runLink, storyLink } from "./run.js";
import * as server from "./server.js";

export class Compare {
  constructor(app, a, b) {
    Object.assign(this, { app, a, b, title: "Compare two runs" });
  }

  async start() {
    try {
      this.found = await server.compare(this.a, this.b);
    } catch (error) {
      this.problem = error;
    }
    this.app.redraw();
  }

  stop() {}

  render() {
    const top = [
      h("nav", { key: "crumbs", class: "crumbs", "aria-label": "You are here" }, h("a", { href: "#/" }, "Runs"), h("span", { "aria-hidden": "true" }, "›"), h("span", { "aria-current": "page" }, "Compare")),
      h("h1", { tabindex: "-1" }, "Compare two runs"),
    ];
    if (this.problem) return [top, trouble(this.problem)];
    if (!this.found) return [top, h("p", { class: "empty" }, "Loading …")];
    const { runs, rows, stories } = this.found;
    const names = ["A", "B"];
    const heads = runs.map((run, at) => `${names[at]} (${shortId(run.run)})`);
    const isOver = runs.every((run) => ["ended", "unfinished"].includes(run.standing)); // a run that began is no cheap one
    const value = (row, at) => {
      const isBetter = isOver && row.better === names[at].toLowerCase();
      return h("span", { class: isBetter ? "better" : "" }, row[names[at].toLowerCase()], isBetter ? h("span", { class: "chip good" }, icon("check"), h("span", null, "better")) : null);
    };
    const figures = rows.filter((row) => row.a || row.b);
    const side = (line) => (line ? h("span", { class: "chips" }, stateChip(line.state), gradeChip(line.grade), h("small", null, `${line.attempts}× ${line.cost_usd === null ? "" : money(line.cost_usd, line.is_estimated)}`)) : h("span", { class: "soft" }, "not in this run"));
    const link = (line, run) => (line ? h("a", { href: storyLink(run.run, line.id) }, line.id) : null);
    return [
      top,
      h("dl", { key: "runs", class: "facts figures" }, runs.map((run, at) => h("div", { class: "fact" }, h("dt", null, `run ${names[at]}`),
        h("dd", null, h("a", { href: runLink(run.run) }, run.plan || run.run), h("small", null, `${moment(run.started)} · ${run.run}`))))),
      h("section", { key: "rows" }, h("h2", null, "Figures"), table("Figures of the two runs", [
        { name: "What", cell: (row) => row.what }, { name: heads[0], cell: (row) => value(row, 0) }, { name: heads[1], cell: (row) => value(row, 1) }], figures, { key: (row) => row.what })),
      h("section", { key: "charts" }, h("h2", null, "Charts"), h("div", { class: "charts" }, [["stories", "Stories done"], ["cost", "Cost"]].map(([name, title]) =>
        chart({ key: name, path: server.chartOfTwo(this.a, this.b, name, this.app.theme), version: "", title, note: "" })))),
      h("section", { key: "stories" }, h("h2", null, "Stories"), table("Stories of the two runs", [
        { name: "Story", cell: (row) => [h("b", null, link(row.a, runs[0]) ?? link(row.b, runs[1])), " ", row.title] },
        { name: heads[0], cell: (row) => side(row.a) }, { name: heads[1], cell: (row) => side(row.b) }], stories, { key: (row) => row.id })),
    ];
  }
}

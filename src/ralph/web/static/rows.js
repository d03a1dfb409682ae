// A list of any length: only the rows in view are in the page, and their pages are fetched when they come into view.

const PAGE = 200;
const MOST_PAGES = 60;
const TALLEST = 8_000_000; // browsers draw nothing beyond some 30 million pixels

export class Rows {
  /** `fetch(start, count)` gives {total, events}; `fill(row, item)` writes an item into an empty row. */
  constructor(node, { label, columns, fetch, fill, pick }) {
    Object.assign(this, { node, fetch, fill, pick });
    this.total = 0;
    this.top = 0; // the first row in view when it was drawn last
    this.active = -1;
    this.pages = new Map(); // number of the page → its items, or null while it is asked for
    this.rows = new Map(); // index → element
    this.isFollowing = true;
    this.space = document.createElement("div");
    this.space.className = "space";
    this.space.setAttribute("role", "rowgroup");
    node.append(this.space);
    node.tabIndex = 0;
    node.setAttribute("role", "grid");
    node.setAttribute("aria-label", label);
    node.setAttribute("aria-colcount", columns);
    node.setAttribute("aria-readonly", "true");
    node.addEventListener("scroll", () => this.onScroll(), { passive: true });
    node.addEventListener("keydown", (event) => this.onKey(event));
    node.addEventListener("click", (event) => {
      const row = event.target.closest("[role=row]");
      if (row) this.activate(Number(row.dataset.index));
    });
    new ResizeObserver(() => this.resize()).observe(node);
  }

  get height() {
    return matchMedia("(max-width: 640px)").matches ? 48 : 28;
  }

  get tall() {
    return Math.min(this.total * this.height, TALLEST);
  }

  /** Items per pixel that is scrolled: less than one row's height only in a very long list. */
  get first() {
    const room = this.tall - this.node.clientHeight;
    const hidden = this.total - this.node.clientHeight / this.height;
    return room > 0 ? Math.max((this.node.scrollTop / room) * hidden, 0) : 0;
  }

  grow(total) {
    if (total === this.total) return;
    const last = Math.floor((Math.min(this.total, total) - 1) / PAGE);
    if (this.pages.get(last)?.length !== PAGE) this.pages.delete(last); // it was not full
    this.total = total;
    this.node.setAttribute("aria-rowcount", total);
    this.resize();
  }

  /** Rows are taller on a narrow screen, which a phone that is turned no longer is. */
  resize() {
    const isOther = this.drawn !== this.height;
    this.drawn = this.height;
    this.space.style.setProperty("height", `${this.tall}px`);
    if (this.isFollowing) this.node.scrollTop = this.tall;
    else if (isOther) this.show(Math.floor(this.top));
    this.draw();
  }

  onScroll() {
    this.isFollowing = this.node.scrollTop + this.node.clientHeight >= this.tall - 2 * this.height;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  draw() {
    const { height, first } = this;
    this.top = first;
    const from = Math.max(Math.floor(first) - 8, 0);
    const to = Math.min(Math.ceil(first + this.node.clientHeight / height) + 8, this.total);
    for (const [index, row] of this.rows) {
      if (index >= from && index < to) continue;
      row.remove();
      this.rows.delete(index);
    }
    for (let index = from; index < to; index += 1) {
      const row = this.rows.get(index) ?? this.add(index);
      row.style.setProperty("transform", `translateY(${this.node.scrollTop + (index - first) * height}px)`);
      const item = this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
      if (item && row.item !== item) {
        row.item = item;
        row.replaceChildren();
        this.fill(row, item);
      }
      row.classList.toggle("active", index === this.active);
      row.setAttribute("aria-selected", index === this.active);
    }
    for (let page = Math.floor(from / PAGE); page <= Math.floor(Math.max(to - 1, 0) / PAGE); page += 1) this.want(page);
  }

  add(index) {
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", index + 1);
    row.id = `row-${index}`;
    row.dataset.index = index;
    const cell = document.createElement("span");
    cell.setAttribute("role", "gridcell");
    cell.textContent = "…";
    row.append(cell);
    this.rows.set(index, row);
    const after = [...this.rows.keys()].filter((each) => each > index).sort((a, b) => a - b)[0];
    this.space.insertBefore(row, after === undefined ? null : this.rows.get(after)); // in order, for those who hear it
    return row;
  }

  want(page) {
    if (this.pages.has(page) || page * PAGE >= this.total) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), this.pages.size ? 60 : 0); // not every page that a fast scroll passes
  }

  async load() {
    const first = Math.floor(this.first / PAGE);
    const last = Math.floor(Math.min(this.first + this.node.clientHeight / this.height, this.total - 1) / PAGE);
    for (let page = first; page <= last; page += 1) {
      if (this.pages.has(page)) continue;
      this.pages.set(page, null);
      try {
        const { events } = await this.fetch(page * PAGE, PAGE);
        this.pages.set(page, events);
      } catch {
        this.pages.delete(page);
        return;
      }
      for (const old of this.pages.keys()) {
        if (this.pages.size <= MOST_PAGES) break;
        if (Math.abs(old - page) > 2) this.pages.delete(old);
      }
      this.draw();
    }
  }

  show(index) {
    const { height } = this;
    const visible = this.node.clientHeight / height;
    if (index >= this.first && index < this.first + visible - 1) return;
    const top = index < this.first ? index : index - visible + 1;
    const hidden = this.total - visible;
    this.node.scrollTop = hidden > 0 ? (top / hidden) * (this.tall - this.node.clientHeight) : 0;
  }

  activate(index) {
    if (!this.total) return;
    this.active = Math.min(Math.max(index, 0), this.total - 1);
    this.show(this.active);
    this.draw();
    this.node.setAttribute("aria-activedescendant", `row-${this.active}`);
    this.pick(this.rows.get(this.active)?.item ?? null);
  }

  onKey(event) {
    const page = Math.max(Math.floor(this.node.clientHeight / this.height) - 1, 1);
    const from = this.active < 0 ? Math.floor(this.first) - 1 : this.active;
    const steps = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: this.total - 1 };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.activate(steps[event.key]);
  }
}

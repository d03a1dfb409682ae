// What the server is asked: documents, streams and acts.

export class ServerError extends Error {
  constructor(status, body) {
    super(body.error ?? `the server answered ${status}`);
    this.status = status;
    this.hint = body.hint ?? "";
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", redirect: "error", ...options });
  } catch {
    throw new ServerError(0, { error: "the server cannot be reached", hint: "is `ralph serve` still running?" });
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const error = new ServerError(answer.status, body);
    if (answer.status === 401) document.dispatchEvent(new CustomEvent("signed-out", { detail: error }));
    throw error;
  }
  return body;
}

const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "")).toString();
const run = (id) => `/api/runs/${encodeURIComponent(id)}`;

export const home = () => ask("/api/home");
export const story = (id, name) => ask(`${run(id)}/stories/${encodeURIComponent(name)}`);
export const attempt = (id, number) => ask(`${run(id)}/attempts/${Number(number)}`);
export const diff = (id, number) => ask(`${run(id)}/attempts/${Number(number)}/diff`);
export const transcript = (id, number, page) => ask(`${run(id)}/attempts/${Number(number)}/transcript?${query(page)}`);
export const checks = (id) => ask(`${run(id)}/checks`);
export const checkOutput = (id, number, index) =>
  ask(number ? `${run(id)}/attempts/${Number(number)}/checks/${Number(index)}` : `${run(id)}/checks/${Number(index)}`);
export const events = (id, start, count) => ask(`${run(id)}/events?${query({ start, count })}`);
export const compare = (a, b) => ask(`/api/compare?runs=${encodeURIComponent(a)},${encodeURIComponent(b)}`);
export const act = (id, body) =>
  ask(`${run(id)}/acts`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export async function chart(path) {
  const answer = await fetch(path, { credentials: "same-origin", redirect: "error" });
  if (!answer.ok) throw new ServerError(answer.status, await answer.json().catch(() => ({})));
  return answer.text();
}

export const chartOf = (id, name, theme) => `${run(id)}/charts/${name}.svg?theme=${theme}`;
export const chartOfTwo = (a, b, name, theme) =>
  `/api/compare/charts/${name}.svg?runs=${encodeURIComponent(a)},${encodeURIComponent(b)}&theme=${theme}`;

const HOME = "/api/home/stream";
export const homeStream = () => HOME;
export const runStream = (id) => `${run(id)}/stream`;

/**
 * Follow a stream of events. It is closed while the page is hidden, so that many tabs do not use up the few
 * connections that a browser opens to one host; the first event of a stream is always the whole document.
 */
export class Stream {
  constructor(path, kinds, onState, onMissing) {
    Object.assign(this, { path, kinds, onState, onMissing });
    this.patience = 1000;
    this.onVisible = () => (document.hidden ? this.disconnect() : this.connect());
    document.addEventListener("visibilitychange", this.onVisible);
    this.connect();
  }

  connect() {
    this.disconnect();
    if (document.hidden) return;
    const source = (this.source = new EventSource(this.path));
    source.onopen = () => {
      this.patience = 1000;
      this.onState(true);
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this.refused(source);
      else this.onState(false); // the browser tries again itself
    };
    for (const [kind, hear] of Object.entries(this.kinds)) {
      source.addEventListener(kind, (event) => hear(JSON.parse(event.data)));
    }
  }

  /** A stream does not tell why it was refused; its document does. 401 leads to the page that says how to get in. */
  async refused(source) {
    this.timer = setTimeout(() => this.connect(), this.patience);
    this.patience = Math.min(this.patience * 2, 15000);
    const error = await ask(this.path.replace(/\/stream$/, "")).catch((each) => each);
    if (this.source !== source) return;
    if (error.status === 404 && this.onMissing) {
      this.close();
      this.onMissing(error);
    } else this.onState(false);
  }

  disconnect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  close() {
    document.removeEventListener("visibilitychange", this.onVisible);
    this.disconnect();
  }
}

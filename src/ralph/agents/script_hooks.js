// Shared by the plugins of clients that run JavaScript: they call Ralph's hook program, and report on stderr what the
// output of the client leaves out. A line that defines HOOKS, event → shell command, is put before this text.
import { spawn, spawnSync } from "node:child_process";
import { writeSync } from "node:fs";

const UNCHECKED = { deny: "Ralph's hook could not check this call. Try a simpler one, or end your turn." };
const SHELL = "/bin/sh";

export function report(values) {
  try {
    writeSync(2, `ralph: ${JSON.stringify(values)}\n`);
  } catch {} // a full pipe: a report that is lost does no harm
}

function answerOf(event, code, text) {
  try {
    if (code === 0) return text.trim() ? JSON.parse(text) : {};
  } catch {}
  return event === "PreToolUse" ? UNCHECKED : {};
}

export function ask(event, call) {
  if (!HOOKS[event]) return Promise.resolve({});
  return new Promise((resolve) => {
    const child = spawn(SHELL, ["-c", HOOKS[event]], { stdio: ["pipe", "pipe", "ignore"] });
    const parts = [];
    child.stdout.on("data", (part) => parts.push(part));
    child.on("error", () => resolve(answerOf(event, 1, "")));
    child.on("close", (code) => resolve(answerOf(event, code, Buffer.concat(parts).toString("utf8"))));
    child.stdin.on("error", () => {}); // it ended without reading
    child.stdin.end(JSON.stringify(call));
  });
}

// Everything else in the client waits for the answer.
export function askAtOnce(event, call) {
  if (!HOOKS[event]) return {};
  const ended = spawnSync(SHELL, ["-c", HOOKS[event]], { input: JSON.stringify(call), encoding: "utf8" });
  return answerOf(event, ended.status, ended.stdout ?? "");
}

// Requests to a model that fail. The clients retry them for minutes, and pass on little of what the service answers.
export function watchRequests() {
  const send = globalThis.fetch;
  const watched = async (input, init) => {
    const method = init?.method ?? input?.method ?? "GET";
    const url = String(input?.url ?? input);
    const isModel = method === "POST" && (/\/models?\//.test(url) || /"model"\s*:/.test(String(init?.body ?? "")));
    if (!isModel) return send(input, init);
    try {
      const answer = await send(input, init);
      const body = answer.status < 400 ? "" : await answer.clone().text();
      report({ status: answer.status, after: answer.headers.get("retry-after") ?? "", body: body.slice(0, 4000) });
      return answer;
    } catch (error) {
      if (error?.name !== "AbortError") report({ status: 0, after: "", body: String(error?.message ?? error) });
      throw error;
    }
  };
  globalThis.fetch = Object.assign(watched, send);
}

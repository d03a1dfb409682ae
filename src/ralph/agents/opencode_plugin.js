// Ralph's hooks as a plugin of opencode.
import { resolve } from "node:path";
import { ask, askAtOnce, report, watchRequests } from "./ralph.js";

const TOLD = ["filePath", "path", "command", "pattern", "url", "query", "description"];
const FILES = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$/gm;

// A patch changes several files: each of them is judged.
function targets(args) {
  if (typeof args?.patchText !== "string") return [args];
  const paths = [...args.patchText.matchAll(FILES)].map((found) => found[1].trim());
  return paths.length ? paths.map((path) => ({ filePath: path })) : [{}];
}

export const Ralph = async ({ client, directory }) => {
  delete process.env.npm_config_fetch_retries; // it was for the client's own start
  watchRequests();
  report({ directory });
  let session = ""; // that of the run; the sessions of sub-agents are part of it
  let blocks = 0;
  const about = (more) => ({ session, cwd: directory, ...more });

  // No hook of the client can keep it from stopping. A message that is there when it looks for one does: it looks after
  // it has compared the files with those before the step.
  function stop() {
    const answer = askAtOnce("Stop", about({ again: blocks > 0 }));
    if (!answer.block) return;
    blocks += 1;
    const body = { noReply: true, parts: [{ type: "text", text: answer.block }] };
    client.session.prompt({ path: { id: session }, body }).catch(() => {});
  }

  return {
    "chat.message": async (input, output) => {
      if (session) return;
      session = input.sessionID;
      await ask("SessionStart", about({}));
      const prompt = output.parts.map((part) => part.text ?? "").join("\n");
      await ask("UserPromptSubmit", about({ prompt }));
    },
    "tool.execute.before": async (input, output) => {
      const args = output.args ?? {};
      const short = TOLD.filter((name) => typeof args[name] === "string").map((name) => [name, args[name].slice(0, 4000)]);
      const paths = targets(args).map((each) => (each.filePath ? resolve(directory, each.filePath) : ""));
      report({ call: input.callID, tool: input.tool, args: Object.fromEntries(short), paths });
      const cwd = typeof args.workdir === "string" ? resolve(directory, args.workdir) : directory;
      for (const each of targets(args)) {
        const call = about({ cwd, call: input.callID, tool: input.tool, args: each });
        const answer = await ask("PreToolUse", call);
        if (answer.deny) throw new Error(answer.deny);
      }
    },
    "tool.execute.after": async (input, output) => {
      if (typeof output?.output !== "string") return;
      const event = output.metadata?.exit ? "PostToolUseFailure" : "PostToolUse";
      let context = "";
      for (const args of targets(input.args)) {
        const call = about({ call: input.callID, tool: input.tool, args, output: output.output });
        context = (await ask(event, call)).context ?? context;
      }
      if (context) output.output += `\n\n${context}`;
    },
    event: ({ event }) => {
      const { part, status } = event.properties ?? {};
      if (event.type === "session.status" && status?.type === "retry") {
        report({ retry: status.attempt, message: status.message, seconds: (status.next - Date.now()) / 1000 });
      } else if (event.type === "message.part.updated" && part?.type === "step-finish") {
        if (part.sessionID !== session) report({ tokens: part.tokens, cost: part.cost });
        else if (!["tool-calls", "unknown"].includes(part.reason)) stop();
      }
    },
  };
};

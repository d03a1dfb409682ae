// Ralph's hooks as an extension of Pi.
import { ask, watchRequests } from "./ralph.js";

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const textOf = (content) => content.map((part) => part.text ?? "").join("\n");

export default function (pi) {
  watchRequests();
  let begun = false;
  let failed = false; // the last answer of the model is an error
  const about = (context, more) => ({ session: context.sessionManager.getSessionId(), cwd: context.cwd, ...more });

  pi.on("session_start", async (_, context) => {
    await ask("SessionStart", about(context));
  });
  pi.on("before_agent_start", async (event, context) => {
    if (!begun) await ask("UserPromptSubmit", about(context, { prompt: event.prompt }));
    begun = true; // what follows is a message of a hook
  });
  pi.on("tool_call", async (event, context) => {
    const call = about(context, { call: event.toolCallId, tool: event.toolName, args: event.input });
    const answer = await ask("PreToolUse", call);
    if (answer.deny) return { block: true, reason: answer.deny };
  });
  pi.on("tool_result", async (event, context) => {
    const output = textOf(event.content);
    const call = about(context, { call: event.toolCallId, tool: event.toolName, args: event.input, output });
    const answer = await ask(event.isError ? "PostToolUseFailure" : "PostToolUse", call);
    if (answer.context) return { content: [...event.content, { type: "text", text: answer.context }] };
  });
  pi.on("message_end", async (event) => {
    if (event.message.role === "assistant") failed = ["error", "aborted"].includes(event.message.stopReason);
  });
  pi.on("session_shutdown", async (_, context) => {
    await ask("SessionEnd", about(context));
  });
  // The last message on the command line: no event of the client can keep it from stopping.
  pi.registerCommand("ralph-stop", {
    description: "Check that the work can end",
    handler: async (_, context) => {
      for (let again = false; !failed; again = true) {
        const answer = await ask("Stop", about(context, { again }));
        if (!answer.block) return;
        pi.sendUserMessage(answer.block);
        for (let waited = 0; context.isIdle() && waited < 5000; waited += 20) await pause(20);
        await context.waitForIdle();
        await pause(50); // its events have been read
      }
    },
  });
}

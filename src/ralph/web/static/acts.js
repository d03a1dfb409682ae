// What a person does to a run: buttons, the questions before them, and what the server answers.
//
// Nothing is changed here after an act: the new state comes from the stream, as everything else does.

import { byId, h, patch } from "./dom.js";
import { prose } from "./format.js";
import * as server from "./server.js";

/** Said once, also by a screen reader; `tone` is good or bad. */
export function tell(message, tone = "good", hint = "") {
  const toast = document.createElement("div");
  toast.className = `toast ${tone}`;
  patch(toast, [h("p", null, h("strong", null, prose(message))), hint ? h("p", null, prose(hint)) : null,
    h("button", { type: "button", class: "quiet", "aria-label": "Dismiss this message", onclick: () => toast.remove() }, "×")]);
  byId("toasts").append(toast);
  byId(tone === "bad" ? "alert" : "status").textContent = hint ? `${message}. ${hint}` : message;
  setTimeout(() => toast.remove(), tone === "bad" ? 20000 : 6000);
}

const sent = []; // what was done on this page: a run that has ended does not tell

export const sentTo = (run, story) => sent.filter((each) => each.run === run && each.story === story);

export async function perform(run, act) {
  try {
    const { message } = await server.act(run, { story: "", text: "", finding: "", ...act });
    tell(message);
    sent.push({ run, story: act.story ?? "", message, t: Date.now() / 1000 });
    document.dispatchEvent(new CustomEvent("acted"));
    return true;
  } catch (error) {
    tell(error.message, "bad", error.hint);
    return false;
  }
}

export function button({ run, verb, label, tone = "", onclick }) {
  return h("button", { type: "button", key: `act-${verb}-${run}`, class: `act ${tone}`, "data-verb": verb, onclick: onclick ?? (() => perform(run, { verb })) }, label);
}

export const readOnlyNote = (readOnly) => (readOnly ? h("p", { class: "readonly" }, "Read-only: the server was started with --read-only.") : null);

/** An answer to a question. What is typed stays when the page is drawn again. */
export function answerBox(run, story) {
  const id = `box-${run}-${story}`.replace(/[^\w-]/g, "_");
  return h("form", { key: id, class: "box", onsubmit: async (event) => {
    event.preventDefault();
    const field = event.target.elements.text;
    if (!field.value.trim()) field.focus();
    else if (await perform(run, { verb: "answer", story, text: field.value })) field.value = "";
  } },
  h("label", { for: id }, `Answer for ${story || "the run"}`),
  h("textarea", { id, name: "text", rows: "2" }),
  h("button", { type: "submit", class: "act main", "data-verb": "answer" }, "Send the answer"));
}

/**
 * Ask before an act. `choices`: [label, value, tone]; with `field`, a text is asked for too, and `isNeeded` insists on it.
 * Resolves to {choice, text}, or to null.
 */
export function question({ title, text, choices, field = "", isNeeded = false }) {
  const dialog = byId("dialog");
  return new Promise((resolve) => {
    const opener = document.activeElement;
    const close = (value) => {
      resolve(value);
      dialog.close();
    };
    dialog.replaceChildren();
    patch(dialog, h("form", { key: `${title}`, method: "dialog", onsubmit: (event) => {
      event.preventDefault();
      const typed = event.target.elements.text?.value ?? "";
      if (isNeeded && !typed.trim()) {
        event.target.elements.text.focus();
        return;
      }
      close({ choice: event.submitter?.value ?? choices[0][1], text: typed });
    } },
    h("h2", { id: "dialog-title" }, title),
    text ? h("p", null, prose(text)) : null,
    field ? [h("label", { for: "dialog-text" }, field), h("textarea", { id: "dialog-text", name: "text", rows: "3", required: isNeeded || undefined })] : null,
    h("div", { class: "choices" }, choices.map(([label, value, tone]) => h("button", { type: "submit", class: `act ${tone}`, value }, label)),
      h("button", { type: "button", class: "act quiet", onclick: () => close(null) }, "Cancel"))));
    dialog.onclose = () => {
      resolve(null);
      if (opener?.isConnected) opener.focus();
    };
    dialog.showModal();
    (dialog.querySelector("textarea") ?? dialog.querySelector("button.quiet")).focus();
  });
}

export async function stop(run, acts) {
  const choices = [["Stop after this iteration", "stop", "main"], ["Stop now", "stop-now", "danger"]].filter(([, verb]) => acts.includes(verb));
  const answered = await question({ title: "Stop the run?", choices,
    text: "This cannot be cancelled. A run that stops now saves the work of its agent and rolls it back; `ralph run` continues later." });
  if (answered) await perform(run, { verb: answered.choice });
}

export async function note(run, story = "") {
  const answered = await question({ title: story ? `Note for ${story}` : "Note to the agent", field: "Note", isNeeded: true,
    text: `It is part of the prompt of the next iteration${story ? " on this story" : ""}.`, choices: [["Send the note", "note", "main"]] });
  if (answered) await perform(run, { verb: "note", story, text: answered.text });
}

export async function skip(run, story) {
  const answered = await question({ title: `Skip ${story}?`, field: "Reason (optional)",
    text: "The run continues with the other stories; a retry brings it back.", choices: [["Skip the story", "skip", "danger"]] });
  if (answered) await perform(run, { verb: "skip", story, text: answered.text });
}

export async function decide(run, story, finding, verb) {
  const isReject = verb === "reject";
  const answered = await question({ title: isReject ? `Reject finding ${finding}?` : `Confirm finding ${finding}?`,
    field: isReject ? "Reason" : "Comment (optional)", isNeeded: isReject,
    text: isReject ? "Reviews raise it again only with new evidence." : "A fix then has to deal with it; only a review after that closes it.",
    choices: [[isReject ? "Reject the finding" : "Confirm the finding", verb, isReject ? "danger" : "main"]] });
  if (answered) await perform(run, { verb, story, finding, text: answered.text });
}

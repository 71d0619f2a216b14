// What a conversation shows where there is no message: an empty chat, and a turn without an answer.

import { h, icon } from "./dom.js";
import { t } from "./i18n.js";
import { questionOf } from "./tool_card.js";
import { empty } from "./view.js";

const IDEAS = [t("What is on the screen?"), t("Open Mail"), t("Take a screenshot"), t("How full is the battery?"), "/help"]; // sentences, so that every model understands them

/** Build the invitation of an empty chat; `say(words)` sends an example. */
export function welcome(say) {
  const ideas = h("div", { class: "ideas" }, IDEAS.map((idea) => h("button", { type: "button", class: "chip", onclick: () => say(idea) }, idea)));
  return empty("chat", t("Talk to the agent"), t("It can use the paired phone. Without a model a small built-in agent answers; these show what it does:"), ideas);
}

/**
 * Build the elements in place of a missing answer of `run`, which is null if the server has dropped it. Pending
 * approval requests are shown again; `again(element)` repeats a turn that has ended.
 */
export function absent(run, goesOn, again, answer) {
  if (run?.status === "waiting_for_approval") {
    return [h("div", { class: "later", role: "status" }, (run.approvals ?? []).map((question) => questionOf(question, answer)))];
  }
  if (goesOn) return [h("p", { class: "note later", role: "status" }, t("The answer is not there yet. It appears here by itself."))];
  const failed = run?.status === "failed";
  const said = h("p", { class: failed ? "note failed" : "note" },
    failed ? run.error ?? t("The turn failed.") : run?.status === "cancelled" ? t("Stopped.") : t("There is no answer to this."));
  return [said, h("div", { class: "acts" }, h("button", { type: "button", class: "again", onclick: () => again(said) }, icon("refresh"), t("Try again")))];
}

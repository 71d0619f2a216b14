// Display of one turn of a chat: the user's message, the agent's reasoning, tool calls and text.

import { announce, copyButton, h, icon } from "./dom.js";
import { t } from "./i18n.js";
import { drawn } from "./pictures.js";
import { Prose } from "./prose.js";
import { questionOf, ToolCard } from "./tool_card.js";

const FAILED = /^(error|interrupted): /; // prefix of a failed call's result for the model

const contents = new WeakMap(); // content of a user's message, by its element

/** Build the element of a user's message; `edit(element, content)` sends a changed one in its place. */
export function userMessage(content, edit) {
  const bubble = h("div", { class: "bubble" }, partsOf(content));
  const change = h("button", { type: "button", class: "quiet round small act", "aria-label": t("Edit this message"), title: t("Edit"), onclick: () => editing() }, icon("pen"));
  const element = h("div", { class: "said user" }, h("span", { class: "aside" }, `${t("You:")} `), edit ? change : null, bubble);
  const words = () => (Array.isArray(content) ? content.find((part) => typeof part?.text === "string")?.text ?? "" : textOf(content));
  contents.set(element, content);

  function editing() {
    const box = h("textarea", { rows: "3", "aria-label": t("Changed message") });
    const form = h("form", { class: "bubble edit" }, box,
      h("div", { class: "actions" }, h("button", { type: "button", onclick: end }, t("Cancel")), h("button", { type: "submit", class: "main" }, t("Send"))));
    box.value = words();
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") end(event);
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) form.requestSubmit();
      else return;
      event.preventDefault();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!box.value.trim()) return;
      end();
      edit(element, replaced(content, box.value));
    });
    function end() {
      form.replaceWith(bubble);
      change.hidden = false;
      change.focus();
    }
    bubble.replaceWith(form);
    change.hidden = true;
    box.focus();
  }
  return element;
}

/** Return the content of a user's message that is on the page. */
export function contentOf(element) {
  return contents.get(element);
}

/** Return a content with other words; its files stay. */
function replaced(content, words) {
  if (!Array.isArray(content)) return words;
  const place = content.findIndex((part) => typeof part?.text === "string");
  return place < 0 ? [{ type: "text", text: words }, ...content] : content.with(place, { ...content[place], text: words });
}

/** The agent's answer, part by part. `answer(id, choice)` is called when the user answers an approval request. */
export class AgentMessage {
  #parts = h("div", { class: "parts" });
  #text = "";
  #block = null; // the element of the current text; `#prose` draws into it
  #prose = null;
  #thought = null;
  #calls = new Map();
  #frame = 0;
  #answer;
  #waiting = null; // the sign that the agent works, until its first text
  #said = ""; // all text of the answer
  #acts = null;

  /** Create a message; `waits` for the answer of a turn that has just begun. */
  constructor(answer, waits = false) {
    this.#answer = answer;
    if (waits) this.#waiting = this.#parts.appendChild(h("p", { class: "note thinking" }, h("i"), h("i"), h("i"), t("Thinking")));
    this.element = h("div", { class: "said agent" }, h("span", { class: "aside" }, `${t("Agent:")} `), this.#parts);
  }

  /** Show an event of the turn; `undo(call)` sends the request that reverts a note. */
  take(event, data, undo) {
    const id = data.call_id ?? data.tool_call_id;
    const about = { name: data.tool_name, args: data.args, seconds: data.duration };
    switch (event) {
      case "assistant.delta": return this.say(data.delta);
      case "tool.progress": return this.think(data.delta);
      case "tool.pending": return this.call(id, "waiting", about);
      case "approval.request": return this.ask(id, data);
      case "memory.updated": return this.noted(data, () => undo(data.undo));
      case "tool.started": return this.call(id, "running", about);
      case "tool.completed": return this.call(id, "done", { ...about, result: data.result_preview });
      case "tool.failed": return this.call(id, "failed", { ...about, result: data.error });
      case "assistant.completed": return data.interrupted ? this.note("stopped", t("Stopped.")) : undefined;
      case "run.completed": return this.ended(data);
      case "error": return this.note("failed", data.message ?? t("The turn failed."));
    }
  }

  /** Append a piece of the answer. */
  say(piece) {
    this.#thought = null;
    if (!this.#block) {
      this.#begin();
      this.#text = "";
      if (this.#said) this.#said += "\n\n";
      this.#block = this.#parts.appendChild(h("div", { class: "prose" }));
      this.#prose = new Prose();
    }
    this.#text += piece;
    this.#said += piece;
    // Text may arrive faster than frames; one drawing for each frame is enough.
    this.#frame ||= requestAnimationFrame(() => this.#draw(true));
  }

  /** Append a piece of the reasoning. */
  think(piece) {
    this.#end();
    this.#thought ??= this.#parts.appendChild(h("details", { class: "thought" }, h("summary", {}, icon("spark"), t("Reasoning")), h("p"))).lastChild;
    this.#thought.append(piece);
  }

  /** Show a tool call in a state of `SIGNS`, with the members known so far. */
  call(id, state, { name, args, result, seconds } = {}) {
    let card = this.#calls.get(id);
    if (!card) {
      this.#end();
      this.#thought = null;
      card = new ToolCard(name ?? "tool", args);
      this.#calls.set(id, card);
      this.#parts.append(card.element);
    }
    card.show(state, result, seconds);
  }

  /** Show the approval request of a call, with all its arguments. */
  ask(id, question) {
    this.#calls.get(id)?.ask(questionOf(question, this.#answer));
    announce(t("The agent asks: {question}", { question: question.description || t("Allow this call?") }));
  }

  /** Show an added or removed note of the agent's memory; `undo()` reverts the change. */
  noted({ added, removed }, undo) {
    this.#end();
    const said = h("span", {}, [removed ? t("No longer noted: {note}", { note: removed }) : "", added ? t("Noted: {note}", { note: added }) : ""].filter(Boolean).join(" "));
    const button = h("button", { type: "button", onclick: () => {
      button.remove();
      undo().then(() => said.append(` (${t("undone")})`), (error) => said.append(` (${error.message})`));
    } }, t("Undo"));
    this.#parts.append(h("p", { class: "note" }, said, " ", button));
  }

  /** Append a note about the turn: stopped, failed. */
  note(kind, said) {
    this.#end();
    this.#parts.append(h("p", { class: `note ${kind}` }, said));
  }

  /** Append why a turn was ended early, and what was not done or left open. */
  ended({ reason, unfinished }) {
    if (reason) this.note("stopped", reason);
    if (unfinished?.length) {
      this.note("failed", t("Not done, or left open, in this turn:"));
      this.#parts.append(h("ul", { class: "note failed unfinished" }, ...unfinished.map((line) => h("li", {}, line))));
    }
  }

  /** Draw pending text at once, not with the next frame. */
  draw() {
    this.#end();
  }

  /** Offer to copy the answer, and to replace it by another one with `again(element)`. */
  offer(again, failed = false) {
    const label = failed ? t("Try again") : t("Regenerate");
    this.#acts?.remove();
    this.#acts = h("div", { class: "acts" },
      this.#said ? copyButton(this.#said, "", { "aria-label": t("Copy this answer"), title: t("Copy") }) : null,
      h("button", { type: "button", class: failed ? "again" : "quiet again", onclick: () => again(this.element) }, icon("refresh"), label));
    this.element.append(this.#acts);
  }

  /** End the message: no event follows. */
  finish() {
    this.draw();
    for (const card of this.#calls.values()) card.abandon();
  }

  #begin() {
    this.#waiting?.remove();
    this.#waiting = null;
  }

  #end() {
    this.#begin();
    if (this.#block) this.#draw(false);
    this.#block = null;
  }

  #draw(growing) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#block) this.#prose.draw(this.#block, this.#text, growing);
  }
}

/** Report whether the last turn has no answer yet. */
export function isUnanswered(rows) {
  const last = rows.at(-1);
  return last !== undefined && (last.role !== "assistant" || Boolean(last.tool_calls?.length));
}

/**
 * Build elements from stored rows, oldest first; `goesOn` if the turn of the last row is still under way. `edit` and
 * `again` are those of `userMessage` and `AgentMessage.offer`.
 */
export function messagesOf(rows, goesOn, { edit, again } = {}) {
  const elements = [];
  let message = null;
  const agent = () => {
    if (!message) {
      message = new AgentMessage(null);
      elements.push(message.element);
    }
    return message;
  };
  for (const each of rows) {
    if (each.role === "user") {
      message?.finish();
      if (again) message?.offer(again);
      message = null;
      elements.push(userMessage(each.content, edit));
    } else if (each.role === "assistant") {
      if (each.reasoning) agent().think(each.reasoning);
      if (textOf(each.content)) agent().say(textOf(each.content));
      for (const call of each.tool_calls ?? []) {
        agent().call(call.id ?? call.call_id, "running", { name: call.function?.name ?? call.name, args: argumentsOf(call) });
      }
      if (each.finish_reason === "interrupted") agent().note("stopped", t("Stopped."));
    } else if (each.role === "tool") {
      const text = textOf(each.content);
      const failed = FAILED.test(text); // advice for the model follows the first line
      const result = failed ? text.split("\n", 1)[0] : text;
      agent().call(each.tool_call_id, failed ? "failed" : "done", { name: each.tool_name, result });
    }
  }
  if (message && goesOn) message.draw();
  else {
    message?.finish();
    if (again) message?.offer(again);
  }
  return elements;
}

function argumentsOf(call) {
  try {
    return call.args ?? JSON.parse(call.function?.arguments ?? "{}");
  } catch {
    return {};
  }
}

/** Build the parts of a user's message: text and pictures. */
function partsOf(content) {
  if (!Array.isArray(content)) return textOf(content);
  return content.map((part, n) => {
    const url = part?.image_url?.url ?? part?.image_url;
    return typeof url === "string" ? drawn(url) : `${n ? "\n" : ""}${textOf([part])}`;
  });
}

/** Return the text of a content; other parts as their type. */
export function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (typeof part?.text === "string" ? part.text : `[${part?.type ?? "part"}]`)).join("\n");
}

// Display of one turn of a chat: the user's message, the agent's reasoning, tool calls and text.

import { h, icon, ticking } from "./dom.js";
import { now } from "./format.js";
import { drawn } from "./pictures.js";
import { Prose } from "./prose.js";

const FAILED = /^(error|interrupted): /; // prefix of a failed call's result for the model
const RESULT = 4000; // characters of a result that are shown
const SIGNS = { waiting: "hourglass", running: "tool", done: "check", failed: "cross" };
const ASKING = /^phone_(call|send_sms|send_mms|share_media)$/; // for these the phone asks its user
const WORDS = { waiting: "waits", running: "running", done: "done", failed: "failed" };

/** Build the element of a user's message. */
export function userMessage(content) {
  return h("div", { class: "said user" }, h("span", { class: "aside" }, "You: "), h("div", { class: "bubble" }, partsOf(content)));
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

  /** Create a message; `waits` for the answer of a turn that has just begun. */
  constructor(answer, waits = false) {
    this.#answer = answer;
    if (waits) this.#waiting = this.#parts.appendChild(h("p", { class: "note thinking" }, h("i"), h("i"), h("i"), "Thinking"));
    this.element = h("div", { class: "said agent" }, h("span", { class: "aside" }, "Agent: "), this.#parts);
  }

  /** Append a piece of the answer. */
  say(piece) {
    this.#thought = null;
    if (!this.#block) {
      this.#begin();
      this.#text = "";
      this.#block = this.#parts.appendChild(h("div", { class: "prose" }));
      this.#prose = new Prose();
    }
    this.#text += piece;
    // Text may arrive faster than frames; one drawing for each frame is enough.
    this.#frame ||= requestAnimationFrame(() => this.#draw(true));
  }

  /** Append a piece of the reasoning. */
  think(piece) {
    this.#end();
    this.#thought ??= this.#parts.appendChild(h("details", { class: "thought" }, h("summary", {}, icon("spark"), "Reasoning"), h("p"))).lastChild;
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
  }

  /** Show an added or removed note of the agent's memory; `undo()` reverts the change. */
  noted({ added, removed }, undo) {
    this.#end();
    const said = h("span", {}, [removed ? `No longer noted: ${removed}` : "", added ? `Noted: ${added}` : ""].filter(Boolean).join(" "));
    const button = h("button", { type: "button", onclick: () => {
      button.remove();
      undo().then(() => said.append(" (undone)"), (error) => said.append(` (${error.message})`));
    } }, "Undo");
    this.#parts.append(h("p", { class: "note" }, said, " ", button));
  }

  /** Append a note about the turn: stopped, failed. */
  note(kind, said) {
    this.#end();
    this.#parts.append(h("p", { class: `note ${kind}` }, said));
  }

  /** Append why a turn was ended early, and the acts that failed, were denied or changed nothing. */
  ended({ reason, unfinished }) {
    if (reason) this.note("stopped", reason);
    if (unfinished?.length) {
      this.note("failed", "Not done in this turn:");
      this.#parts.append(h("ul", { class: "note failed unfinished" }, ...unfinished.map((line) => h("li", {}, line))));
    }
  }

  /** Draw pending text at once, not with the next frame. */
  draw() {
    this.#end();
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

class ToolCard {
  #state = "";
  #sign = h("span", { class: "sign" });
  #word = h("span", { class: "word" });
  #words = WORDS;
  #ask = h("div", { hidden: true });
  #result = h("pre", { tabindex: "0", hidden: true });
  #began = now();

  constructor(name, args) {
    const phone = typeof args?.device === "string" && args.device ? args.device : "the phone";
    this.#words = ASKING.test(name) ? { ...WORDS, running: `waiting for a yes on ${phone},` } : WORDS;
    const given = args && typeof args === "object" && Object.keys(args).length ? JSON.stringify(args, null, 2) : "";
    this.element = h("div", { class: "tool" },
      h("details", {},
        h("summary", {}, this.#sign, h("code", {}, name), h("span", { class: "brief" }, brief(args)), this.#word),
        given ? h("pre", { tabindex: "0" }, given) : null, this.#result),
      this.#ask);
  }

  show(state, result, seconds) {
    this.#state = state;
    this.element.dataset.state = state;
    this.#sign.replaceChildren(icon(SIGNS[state]));
    this.#ask.hidden = state !== "waiting" || !this.#ask.childElementCount;
    if (state === "running" || state === "waiting") {
      ticking(this.#word, (each) => {
        if (this.#state === state) each.textContent = `${this.#words[state]} ${Math.max(0, Math.round(now() - this.#began))} s`;
      });
    } else this.#word.textContent = typeof seconds === "number" && seconds >= 0.1 ? `${WORDS[state]} in ${seconds.toFixed(1)} s` : WORDS[state];
    if (result) this.#say(result);
  }

  ask(question) {
    this.#ask.replaceChildren(question);
    this.#ask.hidden = this.#state !== "waiting";
  }

  abandon() {
    if (this.#state === "running" || this.#state === "waiting") this.show("failed", "It was interrupted.");
  }

  #say(said) {
    this.#result.textContent = said.length > RESULT ? `${said.slice(0, RESULT)}…` : said;
    this.#result.hidden = false;
  }
}

/** Build an approval request: the whole command, and buttons for an answer that is valid for this call only. */
export function questionOf(question, answer) {
  const choose = (choice) => () => {
    const said = h("span", { role: "status" }, choice === "deny" ? "Denied." : "Allowed.");
    element.replaceChildren(said);
    answer(question.call_id, choice).catch((error) => { said.textContent = error.message; });
  };
  const element = h("div", { class: "ask" },
    h("span", {}, question.description || "Allow this call?"), h("code", {}, question.command),
    h("button", { type: "button", class: "main", onclick: choose("once") }, "Allow once"),
    h("button", { type: "button", onclick: choose("deny") }, "Deny"));
  return element;
}

/** Report whether the last turn has no answer yet. */
export function isUnanswered(rows) {
  const last = rows.at(-1);
  return last !== undefined && (last.role !== "assistant" || Boolean(last.tool_calls?.length));
}

/** Build elements from stored rows, oldest first; `goesOn` if the turn of the last row is still under way. */
export function messagesOf(rows, goesOn) {
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
      message = null;
      elements.push(userMessage(each.content));
    } else if (each.role === "assistant") {
      if (each.reasoning) agent().think(each.reasoning);
      if (textOf(each.content)) agent().say(textOf(each.content));
      for (const call of each.tool_calls ?? []) {
        agent().call(call.id ?? call.call_id, "running", { name: call.function?.name ?? call.name, args: argumentsOf(call) });
      }
      if (each.finish_reason === "interrupted") agent().note("stopped", "Stopped.");
    } else if (each.role === "tool") {
      const text = textOf(each.content);
      const failed = FAILED.test(text); // advice for the model follows the first line
      const result = failed ? text.split("\n", 1)[0] : text;
      agent().call(each.tool_call_id, failed ? "failed" : "done", { name: each.tool_name, result });
    }
  }
  if (message && goesOn) message.draw();
  else message?.finish();
  return elements;
}

function brief(args) {
  if (!args || typeof args !== "object") return "";
  return Object.values(args).filter((each) => typeof each !== "object").join(" ").slice(0, 80);
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

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (typeof part?.text === "string" ? part.text : `[${part?.type ?? "part"}]`)).join("\n");
}

// One turn of a chat as it is seen: what was asked, what the agent thinks, does and says.

import { h, icon, ticking } from "./dom.js";
import { now } from "./format.js";
import { drawn } from "./pictures.js";
import { Prose } from "./prose.js";

const FAILED = /^(error|interrupted): /; // how the agent begins to tell the model of a call that failed
const RESULT = 4000; // characters of a result that are shown
const SIGNS = { waiting: "hourglass", running: "tool", done: "check", failed: "cross" };
const WORDS = { waiting: "waits", running: "running", done: "done", failed: "failed" };

/** A message of the person. */
export function userMessage(content) {
  return h("div", { class: "said user" }, h("span", { class: "aside" }, "You: "), h("div", { class: "bubble" }, partsOf(content)));
}

/** What the agent answers, part by part. `answer(id, choice)` is called for a call that waits for the person's word. */
export class AgentMessage {
  #parts = h("div", { class: "parts" });
  #text = "";
  #block = null; // the element of the words that come, and what draws them
  #prose = null;
  #thought = null;
  #calls = new Map();
  #frame = 0;
  #answer;

  constructor(answer) {
    this.#answer = answer;
    this.element = h("div", { class: "said agent" }, h("span", { class: "aside" }, "Agent: "), this.#parts);
  }

  /** A piece of the answer. */
  say(piece) {
    this.#thought = null;
    if (!this.#block) {
      this.#text = "";
      this.#block = this.#parts.appendChild(h("div", { class: "prose" }));
      this.#prose = new Prose();
    }
    this.#text += piece;
    // Once a frame is often enough to draw, however fast the words come.
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  /** A piece of its reasoning. */
  think(piece) {
    this.#end();
    this.#thought ??= this.#parts.appendChild(h("details", { class: "thought" }, h("summary", {}, icon("spark"), "Reasoning"), h("p"))).lastChild;
    this.#thought.append(piece);
  }

  /** A tool: a state of `SIGNS`, and what is known of it. */
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

  /** A call waits for the person's word: all that it would do. */
  ask(id, question) {
    this.#calls.get(id)?.ask(questionOf(question, this.#answer));
  }

  /** A note that the agent keeps from now on, or no more; `undo()` takes it back. */
  noted({ added, removed }, undo) {
    this.#end();
    const said = h("span", {}, [removed ? `No longer noted: ${removed}` : "", added ? `Noted: ${added}` : ""].filter(Boolean).join(" "));
    const button = h("button", { type: "button", onclick: () => {
      button.remove();
      undo().then(() => said.append(" (undone)"), (error) => said.append(` (${error.message})`));
    } }, "Undo");
    this.#parts.append(h("p", { class: "note" }, said, " ", button));
  }

  /** A note below it: stopped, failed. */
  note(kind, said) {
    this.#end();
    this.#parts.append(h("p", { class: `note ${kind}` }, said));
  }

  /** Show at once what was said, and not with the next frame. */
  draw() {
    this.#end();
  }

  /** Nothing follows. */
  finish() {
    this.draw();
    for (const card of this.#calls.values()) card.abandon();
  }

  #end() {
    if (this.#block) this.#draw();
    this.#block = null;
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#block) this.#prose.draw(this.#block, this.#text);
  }
}

class ToolCard {
  #state = "";
  #sign = h("span", { class: "sign" });
  #word = h("span", { class: "word" });
  #ask = h("div", { hidden: true });
  #result = h("pre", { tabindex: "0", hidden: true });
  #began = now();

  constructor(name, args) {
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
        if (this.#state === state) each.textContent = `${WORDS[state]} ${Math.max(0, Math.round(now() - this.#began))} s`;
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

/** A question as it is asked: all that would be done, and the buttons of a word that is for this call alone. */
export function questionOf(question, answer) {
  const choose = (choice) => () => {
    const said = h("span", { role: "status" }, choice === "deny" ? "Denied." : "Allowed.");
    element.replaceChildren(said);
    answer(question.call_id, choice).catch((error) => { said.textContent = error.message; });
  };
  const element = h("div", { class: "ask" },
    h("span", {}, question.description || "May it?"), h("code", {}, question.command),
    h("button", { type: "button", class: "main", onclick: choose("once") }, "Allow once"),
    h("button", { type: "button", onclick: choose("deny") }, "Deny"));
  return element;
}

/** Whether the last turn has no answer yet. */
export function isUnanswered(rows) {
  const last = rows.at(-1);
  return last !== undefined && (last.role !== "assistant" || Boolean(last.tool_calls?.length));
}

/** Stored rows as messages, oldest first; `goesOn` if the turn of the last one is still under way. */
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

/** What a person sent: words, and the pictures among them. */
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

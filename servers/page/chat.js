// Chat: the agent of this host, in the browser. Turns stream in; one that nobody reads goes on and is found again.

import { announce, h, icon, Keyed, reconcile } from "./dom.js";
import { ago } from "./format.js";
import { agent, openTurn } from "./net.js";
import { events } from "./sse.js";
import { AgentMessage, history, userMessage } from "./turn.js";
import { empty } from "./view.js";

const IDEAS = ["/help", "/phone ping", "/phone open_app com.example.mail", "/screenshot", "/think"];
const NEAR = 80; // px from the end of the log within which it follows what comes

export function openChat(room) {
  const list = h("ul", { class: "sessions" });
  const kept = new Keyed("updated_at", "last_active");
  const fresh = h("button", { class: "main", type: "button", onclick: () => choose(null) }, icon("plus"), "New chat");
  const log = h("div", { class: "log", role: "log", "aria-label": "Conversation", "aria-live": "off", tabindex: "0" });
  const problem = h("div", { class: "problem", role: "alert", hidden: true });
  const box = h("textarea", { rows: "1", "aria-label": "Message", placeholder: "Message the agent", enterkeyhint: "send" });
  const send = h("button", { class: "main round", type: "submit", "aria-label": "Send" }, icon("send"));
  const stop = h("button", { class: "round stop", type: "button", "aria-label": "Stop", hidden: true }, icon("stop"));
  const form = h("form", { class: "composer" }, box, stop, send);
  const drawer = h("details", { class: "drawer" }, h("summary", {}, icon("chat"), "Chats"), h("div", { class: "rooms" }, fresh, list));
  const closing = new AbortController();
  const wide = matchMedia("(min-width: 52rem)");
  let session = null;
  let turn = null; // under way: { run, message }
  let visit = 0;

  room.append(drawer, h("div", { class: "talk" }, log, problem, form));
  const arrange = () => { drawer.open = wide.matches; };
  wide.addEventListener("change", arrange, { signal: closing.signal });
  arrange();

  // --- chats

  async function load() {
    try {
      const found = await agent("GET", "/sessions", undefined, closing.signal);
      const chats = found.sessions ?? [];
      reconcile(list, kept.nodes(chats, (each) => each.id, (live) => chatItem(live, choose, remove)));
      mark();
      problem.hidden = true;
    } catch (error) {
      fail(error);
    }
  }

  function mark() {
    for (const item of list.children) item.firstChild.setAttribute("aria-current", `${item.firstChild.dataset.id === session}`);
  }

  async function choose(id) {
    if (turn) return;
    const mine = (visit += 1);
    session = id;
    mark();
    if (!wide.matches) drawer.open = false;
    if (id === null) {
      log.replaceChildren(welcome());
      box.focus();
      return;
    }
    log.replaceChildren(h("p", { class: "waiting", role: "status" }, "Loading…"));
    try {
      const found = await agent("GET", `/sessions/${encodeURIComponent(id)}/messages`, undefined, closing.signal);
      if (mine !== visit) return;
      log.replaceChildren(...history(found.messages ?? []));
      if (!log.childElementCount) log.append(welcome());
      log.scrollTop = log.scrollHeight;
    } catch (error) {
      log.replaceChildren();
      fail(error);
    }
  }

  async function remove(chat) {
    if (turn || !confirm(`Delete “${titleOf(chat)}” and all its messages?`)) return;
    try {
      await agent("DELETE", `/sessions/${encodeURIComponent(chat.id)}`, undefined, closing.signal);
      if (session === chat.id) choose(null);
      load();
    } catch (error) {
      fail(error);
    }
  }

  // --- a turn

  async function say(words) {
    if (turn || !words.trim()) return;
    problem.hidden = true;
    box.value = "";
    grow();
    log.querySelector(".empty")?.remove();
    const message = new AgentMessage((choice) => agent("POST", `/runs/${encodeURIComponent(mine.run)}/approval`, { choice }));
    const mine = (turn = { run: null, message });
    busy(true);
    log.append(userMessage(words), message.element);
    log.scrollTop = log.scrollHeight;
    try {
      session ??= (await agent("POST", "/sessions", {}, closing.signal)).id;
      const body = await openTurn(session, { message: words }, closing.signal);
      for await (const { event, data } of events(body)) take(mine, event, JSON.parse(data));
    } catch (error) {
      if (closing.signal.aborted) return;
      message.note("failed", error.message || "The connection was lost.");
    }
    message.finish();
    turn = null;
    busy(false);
    announce("The agent has answered");
    load();
  }

  function take(mine, event, data) {
    const follow = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
    const { message } = mine;
    const id = data.call_id ?? data.tool_call_id;
    const about = { name: data.tool_name, args: data.args, seconds: data.duration };
    if (event === "run.started") mine.run = data.run_id;
    else if (event === "assistant.delta") message.say(data.delta);
    else if (event === "tool.progress") message.think(data.delta);
    else if (event === "tool.pending") message.call(id, "waiting", about);
    else if (event === "tool.started") message.call(id, "running", about);
    else if (event === "tool.completed") message.call(id, "done", { ...about, result: data.result_preview });
    else if (event === "tool.failed") message.call(id, "failed", { ...about, result: data.error });
    else if (event === "assistant.completed" && data.interrupted) message.note("stopped", "Stopped.");
    else if (event === "error") message.note("failed", data.message ?? "The turn failed.");
    if (follow) requestAnimationFrame(() => { log.scrollTop = log.scrollHeight; });
  }

  function busy(on) {
    room.classList.toggle("busy", on);
    stop.hidden = !on;
    stop.disabled = false;
    send.hidden = on;
    if (!on) box.focus();
  }

  stop.addEventListener("click", async () => {
    if (!turn?.run) return;
    stop.disabled = true;
    try {
      await agent("POST", `/runs/${encodeURIComponent(turn.run)}/stop`);
    } catch (error) {
      stop.disabled = false;
      fail(error);
    }
  });

  // --- the composer

  function grow() {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 200)}px`;
  }

  box.addEventListener("input", grow);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    say(box.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(box.value);
  });

  function fail(error) {
    if (closing.signal.aborted) return;
    problem.replaceChildren(error.message);
    problem.hidden = false;
  }

  function welcome() {
    const ideas = h("div", { class: "ideas" }, IDEAS.map((idea) => h("button", { type: "button", class: "chip", onclick: () => say(idea) }, idea)));
    return empty("chat", "Talk to the agent", "It can use the paired phone. Without a model a small built-in agent answers; these show what it does:", ideas);
  }

  log.append(welcome());
  load();
  return { close: () => closing.abort() };
}

function chatItem(live, choose, remove) {
  const chat = live.item;
  const title = titleOf(chat);
  return h("li", {},
    h("button", { type: "button", class: "chat-title", "data-id": chat.id, onclick: () => choose(chat.id) }, h("span", {}, title), h("small", {}, ago(chat.updated_at))),
    h("button", { type: "button", class: "quiet round small", "aria-label": `Delete ${title}`, onclick: () => remove(chat) }, icon("trash")));
}

function titleOf(chat) {
  return chat.title || chat.preview || "New chat";
}

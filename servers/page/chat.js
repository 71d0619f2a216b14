// Chat with the agent of this host. Turns are streamed; a turn without a reader goes on, and its chat can be reopened.

import { announce, h, icon, Keyed, put, reconcile } from "./dom.js";
import { ago, plain } from "./format.js";
import { agent, openTurn } from "./net.js";
import { followed } from "./follow.js";
import { loadMarkdown } from "./prose.js";
import { events } from "./sse.js";
import { Attachments } from "./pictures.js";
import { AgentMessage, isUnanswered, messagesOf, questionOf, userMessage } from "./turn.js";
import { ask, empty } from "./view.js";

const IDEAS = ["/help", "/phone ping", "/phone open_app com.example.mail", "/screenshot", "/think"];
const LIVE = ["queued", "running", "waiting_for_approval", "stopping"]; // states of a run that has not ended
const PAUSE = 250; // ms after the last key until chats are searched
const AGAIN = 2000; // ms between two polls of a turn that another reader started
let last = null; // the chat that was open when another tab was chosen

export function openChat(room, auto, place) {
  const list = h("ul", { class: "sessions" });
  const kept = new Keyed("updated_at", "last_active");
  const fresh = h("button", { class: "main", type: "button", onclick: () => { choose(null); box.focus(); } }, icon("plus"), "New chat");
  const thread = h("div", { class: "thread" });
  const { log, jump, follow } = followed(thread);
  const problem = h("div", { class: "problem", role: "alert", hidden: true });
  const box = h("textarea", { rows: "1", "aria-label": "Message", placeholder: "Message the agent", enterkeyhint: "send" });
  const send = h("button", { class: "main round", type: "submit", "aria-label": "Send" }, icon("send"));
  const stop = h("button", { class: "round stop", type: "button", "aria-label": "Stop", hidden: true }, icon("stop"));
  const attachments = new Attachments((words) => fail(new Error(words)));
  const form = h("form", { class: "composer" }, attachments.element, attachments.button, box, stop, send);
  const looking = h("input", { type: "search", "aria-label": "Search chats", placeholder: "Search chats" });
  const title = h("h3", {});
  const model = h("span", { class: "sub" });
  const rename = h("button", { type: "button", class: "quiet round small", "aria-label": "Rename this chat", title: "Rename", onclick: () => renaming() }, icon("pen"));
  const head = h("div", { class: "talk-head" }, h("div", { class: "talk-title" }, title, rename), model);
  const rooms = h("div", { class: "rooms" }, fresh, looking, list);
  const drawer = h("details", { class: "drawer" }, h("summary", {}, icon("chat"), "Chats"), rooms);
  const closing = new AbortController();
  const wide = matchMedia("(min-width: 52rem)");
  let session = null;
  let chats = [];
  let found = null; // ids of chats with the searched words; null: no search
  let turn = null; // the turn under way: { run, message, unwanted, reading }
  let elsewhere = null; // the run of a turn under way that this page does not stream
  let visit = 0;
  let lost = false; // the latest poll of the open chat failed

  room.append(drawer, h("div", { class: "talk" }, head, log, jump, problem, form));
  const arrange = () => { drawer.open = wide.matches; };
  wide.addEventListener("change", arrange, { signal: closing.signal });
  arrange();

  // --- chats

  async function load() {
    try {
      chats = (await agent("GET", "/sessions", undefined, closing.signal)).sessions ?? [];
      show();
      if (problem.querySelector("button")) problem.hidden = true;
    } catch (error) {
      fail(error, h("button", { type: "button", onclick: load }, "Retry"));
    }
  }

  /** Show all chats, or those with the searched words in the title or in a message. */
  function show() {
    const words = looking.value.trim().toLowerCase();
    const wanted = chats.filter((each) => !words || titleOf(each).toLowerCase().includes(words) || found?.has(each.id));
    const items = kept.nodes(wanted, (each) => each.id, (live) => chatItem(live, choose, remove));
    reconcile(list, items.length || !words ? items : [h("li", { class: "sub" }, "Nothing found")]);
    mark();
  }

  function mark() {
    for (const item of list.querySelectorAll(".chat-title")) item.setAttribute("aria-current", `${item.dataset.id === session}`);
    const chat = chats.find((each) => each.id === session);
    put(title, chat ? titleOf(chat) : "New chat");
    rename.hidden = !chat;
  }

  let pause = 0;
  looking.addEventListener("input", () => {
    clearTimeout(pause);
    found = null;
    show();
    const words = looking.value.trim();
    if (words) pause = setTimeout(() => search(words), PAUSE);
  });

  async function search(words) {
    try {
      const hits = await agent("GET", `/sessions/search?q=${encodeURIComponent(words)}`, undefined, closing.signal);
      if (looking.value.trim() !== words) return;
      found = new Set((hits.results ?? []).map((each) => each.session_id));
      show();
    } catch (error) {
      fail(error);
    }
  }

  function renaming() {
    const chat = chats.find((each) => each.id === session);
    const name = h("input", { "aria-label": "Title", value: titleOf(chat), maxlength: "200" });
    const over = (focus) => {
      naming.replaceWith(title);
      rename.hidden = false;
      if (focus) rename.focus();
    };
    const naming = h("form", { class: "joined" }, name, h("button", { type: "submit" }, "Save"));
    naming.addEventListener("keydown", (event) => { if (event.key === "Escape") over(true); });
    naming.addEventListener("leave", () => over(false));
    naming.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await agent("PATCH", `/sessions/${encodeURIComponent(chat.id)}`, { title: name.value.trim() }, closing.signal);
      } catch (error) {
        fail(error);
        return;
      }
      over(true);
      load();
    });
    title.replaceWith(naming);
    rename.hidden = true;
    name.select();
  }

  agent("GET", "/model", undefined, closing.signal).then((answer) => {
    put(model, answer.model ? `Model: ${answer.model}` : answer.chat ? "Model: built-in agent" : "");
  }, () => {});

  /** Put the open chat into the address, so that a reload, a bookmark or the back button opens the chat again. */
  function point(how) {
    last = session;
    const here = session === null ? "#chat" : `#chat/${encodeURIComponent(session)}`;
    if (!closing.signal.aborted && location.hash !== here) history[how](null, "", here);
  }

  async function choose(id, how = "pushState") {
    if (turn && (turn.run === null || id === session)) {
      point("replaceState");
      return;
    }
    leave();
    const mine = (visit += 1);
    head.querySelector("form")?.dispatchEvent(new Event("leave"));
    session = id;
    problem.hidden = true;
    waitFor(null);
    point(how);
    mark();
    if (!wide.matches) drawer.open = false;
    if (id === null) {
      thread.replaceChildren(welcome());
      return;
    }
    thread.replaceChildren(h("p", { class: "waiting", role: "status" }, "Loading…"));
    await look(mine, null);
  }

  /** Show the stored messages of the open chat; poll while a turn goes on that this page does not stream. */
  async function look(mine, seen) {
    let rows;
    let run = null; // the run of the last turn, if that has no answer
    try {
      rows = await stored();
      if (isUnanswered(rows)) {
        run = await runOf(rows.at(-1).run_id);
        if (!LIVE.includes(run?.status)) rows = await stored(); // the run may have ended in between
      }
    } catch (error) {
      if (mine !== visit) return;
      fail(error);
      if (seen !== null && error.status !== 404) {
        lost = true;
        later(mine, seen); // the chat exists: retry
        return;
      }
      thread.replaceChildren();
      waitFor(null);
      if (error.status === 404) session = null; // the chat was deleted
      return;
    }
    if (mine !== visit) return;
    if (lost) problem.hidden = true;
    lost = false;
    const goesOn = isUnanswered(rows) && LIVE.includes(run?.status);
    const state = JSON.stringify([rows, run?.status, run?.approvals]);
    if (state !== seen) {
      thread.replaceChildren(...messagesOf(rows, goesOn));
      if (isUnanswered(rows)) thread.append(note(run, goesOn));
      if (!rows.length) thread.append(welcome());
      if (seen === null) follow();
    }
    waitFor(goesOn ? run.run_id : null);
    if (goesOn) later(mine, state);
    else if (seen !== null) load();
  }

  async function stored() {
    return (await agent("GET", `/sessions/${encodeURIComponent(session)}/messages`, undefined, closing.signal)).messages ?? [];
  }

  /** Return the state of a run; null if the API server has dropped the run. */
  async function runOf(id) {
    try {
      return id ? await agent("GET", `/runs/${encodeURIComponent(id)}`, undefined, closing.signal) : null;
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  }

  /** Build the note in place of a missing answer. */
  function note(run, goesOn) {
    if (run?.status === "waiting_for_approval") return askAgain(run);
    if (goesOn) return h("p", { class: "note later", role: "status" }, "The answer is not there yet. It appears here by itself.");
    if (run?.status === "failed") return h("p", { class: "note failed" }, run.error ?? "The turn failed.");
    return h("p", { class: "note" }, run?.status === "cancelled" ? "Stopped." : "There is no answer to this.");
  }

  /** Show a run's pending approval requests again, after the page that showed them was closed. */
  function askAgain(run) {
    const asks = (run.approvals ?? []).map((question) => questionOf(question, (id, choice) => {
      box.focus();
      return answer(run.run_id, id, choice).catch(fail);
    }));
    return h("div", { class: "later", role: "status" }, asks);
  }

  /** Answer the approval request of one call. */
  function answer(run, id, choice) {
    return agent("POST", `/runs/${encodeURIComponent(run)}/approval`, { choice, call_id: id });
  }

  function later(mine, seen) {
    setTimeout(() => {
      if (mine !== visit || closing.signal.aborted) return;
      if (document.hidden) later(mine, seen);
      else look(mine, seen);
    }, AGAIN);
  }

  /** Set the run that Stop ends although this page does not stream its turn. */
  function waitFor(run) {
    if (run !== elsewhere) stop.disabled = false;
    elsewhere = run;
    stop.hidden = run === null;
  }

  async function remove(chat) {
    if (!await ask("Delete this chat?", `“${plain(titleOf(chat))}” and all its messages`, "Delete")) return;
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
    if (turn || !(words.trim() || attachments.count)) return;
    const content = attachments.message(words);
    const overtakes = elsewhere !== null || thread.querySelector(".waiting") !== null; // messages above are missing
    visit += 1;
    waitFor(null);
    problem.hidden = true;
    box.value = "";
    grow();
    for (const each of thread.querySelectorAll(".empty, .waiting, .later")) each.remove();
    const message = new AgentMessage((id, choice) => answer(mine.run, id, choice), true);
    const mine = (turn = { run: null, message, unwanted: false, reading: new AbortController() });
    const reading = AbortSignal.any([closing.signal, mine.reading.signal]);
    busy(true);
    thread.append(userMessage(content), message.element);
    follow();
    try {
      session ??= (await agent("POST", "/sessions", {}, closing.signal)).id;
      point("replaceState");
      const body = await openTurn(session, { message: content, approvals: true }, reading);
      for await (const { event, data } of events(body)) take(mine, event, JSON.parse(data));
    } catch (error) {
      if (closing.signal.aborted || turn !== mine) return;
      message.note("failed", error.message || "The connection was lost.");
    }
    message.finish();
    turn = null;
    busy(false);
    announce("The agent has answered");
    if (overtakes) choose(session);
    load();
  }

  /** Stop streaming a turn. The turn goes on, and its chat shows it when opened. */
  function leave() {
    if (!turn) return;
    turn.reading.abort();
    turn = null;
    busy(false);
    load(); // the list may lack a new chat
  }

  function take(mine, event, data) {
    const { message } = mine;
    const id = data.call_id ?? data.tool_call_id;
    const about = { name: data.tool_name, args: data.args, seconds: data.duration };
    if (event === "run.started") {
      mine.run = data.run_id;
      rooms.inert = false; // until then the chat may not exist
      if (mine.unwanted) end(mine.run);
    } else if (event === "assistant.delta") message.say(data.delta);
    else if (event === "tool.progress") message.think(data.delta);
    else if (event === "tool.pending") message.call(id, "waiting", about);
    else if (event === "approval.request") message.ask(id, data);
    else if (event === "memory.updated") message.noted(data, () => agent(data.undo.method, "/memory", data.undo.body));
    else if (event === "tool.started") message.call(id, "running", about);
    else if (event === "tool.completed") message.call(id, "done", { ...about, result: data.result_preview });
    else if (event === "tool.failed") message.call(id, "failed", { ...about, result: data.error });
    else if (event === "assistant.completed" && data.interrupted) message.note("stopped", "Stopped.");
    else if (event === "run.completed") message.ended(data);
    else if (event === "error") message.note("failed", data.message ?? "The turn failed.");
  }

  function busy(on) {
    const mayFocus = document.activeElement === document.body || form.contains(document.activeElement);
    rooms.inert = on;
    stop.hidden = !on;
    stop.disabled = false;
    send.hidden = on;
    if (!on && mayFocus) box.focus(); // but keep a focus that the user has moved
  }

  stop.addEventListener("click", () => {
    stop.disabled = true;
    if (turn) turn.unwanted = true; // a turn without a run id is ended when it starts
    const run = turn ? turn.run : elsewhere;
    if (run) end(run);
  });

  async function end(run) {
    try {
      await agent("POST", `/runs/${encodeURIComponent(run)}/stop`);
    } catch (error) {
      stop.disabled = false;
      fail(error);
    }
  }

  // --- the composer

  function grow() {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 200)}px`;
  }

  box.addEventListener("input", grow);
  box.addEventListener("paste", (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    attachments.add(event.clipboardData.files);
  });
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    attachments.add(event.dataTransfer.files);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    say(box.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(box.value);
  });

  function fail(error, ...more) {
    if (closing.signal.aborted) return;
    problem.replaceChildren(h("span", {}, error.message), ...more);
    problem.hidden = false;
  }

  function welcome() {
    const ideas = h("div", { class: "ideas" }, IDEAS.map((idea) => h("button", { type: "button", class: "chip", onclick: () => say(idea) }, idea)));
    return empty("chat", "Talk to the agent", "It can use the paired phone. Without a model a small built-in agent answers; these show what it does:", ideas);
  }

  loadMarkdown();
  choose(named(place) ?? last, "replaceState");
  load();
  return {
    go: (there) => { if (named(there) !== session) choose(named(there), "replaceState"); },
    close: () => closing.abort(),
  };
}

function chatItem(live, choose, remove) {
  const chat = live.item;
  const title = titleOf(chat);
  return h("li", {},
    h("button", { type: "button", class: "chat-title", "data-id": chat.id, onclick: () => choose(chat.id) }, h("span", {}, title), h("small", {}, ago(chat.updated_at))),
    h("button", { type: "button", class: "quiet round small", "aria-label": `Delete ${title}`, onclick: () => remove(chat) }, icon("trash")));
}

/** Return the chat id of an address; null if there is none. */
function named(place) {
  try {
    return decodeURIComponent(place) || null;
  } catch {
    return null;
  }
}

function titleOf(chat) {
  return chat.title || chat.preview || "New chat";
}

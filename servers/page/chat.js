// Chat with the agent of this host. Turns are streamed; a turn without a reader goes on, and its chat can be reopened.

import { announce, h, icon } from "./dom.js";
import { Calls } from "./chat_calls.js";
import { ChatHead } from "./chat_head.js";
import { ChatList, titleOf } from "./chat_list.js";
import { Composer } from "./composer.js";
import { absent, welcome } from "./chat_notes.js";
import { keepDraft } from "./drafts.js";
import { Failures, isOutage } from "./failures.js";
import { followed } from "./follow.js";
import { now, plain } from "./format.js";
import { t } from "./i18n.js";
import { openTurn } from "./net.js";
import { loadMarkdown } from "./prose.js";
import { events } from "./sse.js";
import { AgentMessage, contentOf, isUnanswered, messagesOf, textOf, userMessage } from "./turn.js";
import { ask } from "./view.js";

const LIVE = ["queued", "running", "waiting_for_approval", "stopping"]; // states of a run that has not ended
const AGAIN = 2000; // ms between two polls of a turn that another reader started
let last = null; // the chat that was open when another tab was chosen

export function openChat(room, auto, place) {
  const thread = h("div", { class: "thread" });
  const { log, jump, follow } = followed(thread);
  const closing = new AbortController();
  const calls = new Calls(closing.signal);
  const failures = new Failures(load, closing.signal);
  const [problem, fail] = [failures.element, (error) => failures.show(error)];
  const list = new ChatList(closing.signal, { choose: (id) => choose(id).then(() => { if (id === null) composer.box.focus(); }), remove, fail });
  const head = new ChatHead({ change, rowsOf: (chat) => calls.stored(chat.id), fail }, closing.signal);
  const composer = new Composer({ send, stop, fail });
  const drawer = h("details", { class: "drawer" }, h("summary", {}, icon("chat"), t("Chats")), list.element);
  const wide = matchMedia("(min-width: 52rem)");
  let session = null;
  let turn = null; // the turn under way: { run, message, unwanted, reading }
  let elsewhere = null; // the run of a turn under way that this page does not stream
  let visit = 0;
  let lost = false; // the latest poll of the open chat failed

  const talk = h("div", { class: "talk" }, head.element, log, jump, problem, composer.element);
  composer.acceptDrops(talk);
  room.append(drawer, talk);
  const arrange = () => { drawer.open = wide.matches; };
  wide.addEventListener("change", arrange, { signal: closing.signal });
  arrange();

  // --- chats

  async function load() {
    if (closing.signal.aborted || !await list.load()) return;
    head.show(list.find(session));
    recovered();
  }

  /** Change members of a chat; report whether the server did. */
  async function change(chat, members) {
    try {
      await calls.change(chat.id, members);
    } catch (error) {
      fail(error);
      return false;
    }
    await load();
    return true;
  }

  /** Put the open chat into the address, so that a reload, a bookmark or the back button opens the chat again. */
  function point(how) {
    last = session;
    const here = session === null ? "#chat" : `#chat/${encodeURIComponent(session)}`;
    if (!closing.signal.aborted && location.hash !== here) history[how](null, "", here);
  }

  async function choose(id, how = "pushState") {
    if (turn && (turn.run === null || id === session)) return point("replaceState");
    leave();
    const mine = (visit += 1);
    session = id;
    problem.hidden = true;
    waitFor(null);
    point(how);
    list.mark(id);
    head.show(list.find(id));
    composer.open(id);
    if (!wide.matches) drawer.open = false;
    if (id === null) return thread.replaceChildren(welcome(say));
    thread.replaceChildren(h("p", { class: "waiting", role: "status" }, t("Loading…")));
    await look(mine, null);
  }

  /** Show the stored messages of the open chat; poll while a turn goes on that this page does not stream. */
  async function look(mine, seen) {
    let rows;
    let run = null; // the run of the last turn, if that has no answer
    try {
      rows = await calls.stored(session);
      if (isUnanswered(rows)) {
        run = await calls.run(rows.at(-1).run_id);
        if (!LIVE.includes(run?.status)) rows = await calls.stored(session); // the run may have ended in between
      }
    } catch (error) {
      if (mine !== visit) return;
      fail(error);
      if (seen !== null && error.code !== "session_not_found") {
        lost = true;
        later(mine, seen); // the chat exists: retry
        return;
      }
      waitFor(null);
      if (isOutage(error)) return; // `recovered` looks again
      thread.replaceChildren();
      if (error.code === "session_not_found") session = null; // the chat was deleted
      return;
    }
    if (mine !== visit) return;
    if (lost) problem.hidden = true;
    lost = false;
    const goesOn = isUnanswered(rows) && LIVE.includes(run?.status);
    const state = JSON.stringify([rows, run?.status, run?.approvals]);
    if (state !== seen) {
      thread.replaceChildren(...messagesOf(rows, goesOn, { edit, again }));
      if (isUnanswered(rows)) thread.append(...absent(run, goesOn, again, (id, choice) => {
        composer.box.focus();
        return calls.answer(run.run_id, id, choice).catch(fail);
      }));
      if (!rows.length) thread.append(welcome(say));
      if (seen === null) follow();
    }
    waitFor(goesOn ? run.run_id : null);
    if (goesOn) later(mine, state);
    else if (seen !== null) load();
  }

  function later(mine, seen) {
    setTimeout(() => {
      if (mine !== visit || closing.signal.aborted) return;
      (document.hidden ? later : look)(mine, seen);
    }, AGAIN);
  }

  /** Set the run that Stop ends although this page does not stream its turn. */
  function waitFor(run) {
    if (run === elsewhere) return;
    elsewhere = run;
    composer.show(turn !== null, run !== null || turn !== null);
  }

  async function remove(chat) {
    if (!await ask(t("Delete this chat?"), t("“{title}” and all its messages", { title: plain(titleOf(chat)) }), t("Delete"))) return;
    try {
      await calls.remove(chat.id);
      keepDraft(chat.id, "");
      if (session === chat.id) choose(null);
      load();
    } catch (error) {
      fail(error);
    }
  }

  // --- a turn

  function send() {
    if (!turn && composer.isFilled) say(composer.take());
  }

  async function say(content) {
    if (turn) return;
    const overtakes = elsewhere !== null || thread.querySelector(".waiting") !== null; // messages above are missing
    visit += 1;
    waitFor(null);
    problem.hidden = true;
    for (const each of thread.querySelectorAll(".empty, .waiting, .later")) each.remove();
    const message = new AgentMessage((id, choice) => calls.answer(mine.run, id, choice), true);
    const mine = (turn = { run: null, message, unwanted: false, reading: new AbortController(), failed: false });
    const reading = AbortSignal.any([closing.signal, mine.reading.signal]);
    busy(true);
    thread.append(userMessage(content, edit), message.element);
    follow();
    try {
      if (session === null) {
        session = await calls.create();
        composer.created(session);
        list.add({ id: session, preview: textOf(content).slice(0, 80), updated_at: now() });
        list.mark(session);
        head.show(list.find(session));
      }
      point("replaceState");
      const body = await openTurn(session, { message: content, approvals: true }, reading);
      for await (const { event, data } of events(body)) take(mine, event, JSON.parse(data));
    } catch (error) {
      if (closing.signal.aborted || turn !== mine) return;
      message.note("failed", error.message || t("The connection was lost."));
      mine.failed = true;
    }
    message.finish();
    message.offer(again, mine.failed);
    turn = null;
    busy(false);
    announce(t("The agent has answered"));
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
    if (event === "run.started") {
      mine.run = data.run_id;
      composer.keep();
      list.element.inert = false; // until then the chat may not exist
      if (mine.unwanted) end(mine.run);
    } else if (event === "error") mine.failed = true;
    mine.message.take(event, data, (call) => calls.memory(call));
  }

  function busy(on) {
    const mayFocus = document.activeElement === document.body || composer.element.contains(document.activeElement);
    list.element.inert = on;
    composer.show(on, on);
    if (!on && mayFocus) composer.box.focus(); // but keep a focus that the user has moved
  }

  function stop() {
    composer.stopping = true;
    if (turn) turn.unwanted = true; // a turn without a run id is ended when it starts
    const run = turn ? turn.run : elsewhere;
    if (run) end(run);
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !composer.isStoppable || document.querySelector("dialog[open]")) return;
    stop();
  }, { signal: closing.signal });

  /** Send another message in the place of one of the user; it and all after it are removed. */
  async function edit(element, content) {
    if (turn || thread.inert) return;
    thread.inert = true; // a second click does nothing
    const place = [...thread.querySelectorAll(".said.user")].reverse().indexOf(element);
    try {
      const users = session === null ? [] : (await calls.stored(session)).filter((row) => row.role === "user");
      const row = users.at(-1 - place);
      if (row && textOf(row.content) === textOf(contentOf(element))) await calls.truncate(session, row.row_id);
      else if (place > 0) throw new Error(t("This chat has changed. Open it again."));
    } catch (error) {
      return fail(error);
    } finally {
      thread.inert = false;
    }
    while (element.nextSibling) element.nextSibling.remove();
    element.remove();
    say(content);
  }

  /** Send the message before an answer again. */
  function again(answered) {
    let element = answered;
    while (element && !element.matches(".said.user")) element = element.previousElementSibling;
    if (element) edit(element, contentOf(element));
  }

  function end(run) {
    calls.stop(run).catch((error) => {
      composer.stopping = false;
      fail(error);
    });
  }

  /** Continue after an outage. */
  function recovered() {
    failures.recovered();
    if (thread.querySelector(".waiting") && session !== null) look(visit, null);
  }

  loadMarkdown();
  choose(named(place) ?? last, "replaceState");
  load();
  return {
    go: (there) => { if (named(there) !== session) choose(named(there), "replaceState"); },
    close: () => closing.abort(),
  };
}

/** Return the chat id of an address; null if there is none. */
function named(place) {
  try {
    return decodeURIComponent(place) || null;
  } catch {
    return null;
  }
}

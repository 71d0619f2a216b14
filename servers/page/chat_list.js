// The list of chats: folders by date, pinned and archived chats, search with snippets.

import { h, icon, Keyed, reconcile } from "./dom.js";
import { ago, now, seconds } from "./format.js";
import { t } from "./i18n.js";
import { agent } from "./net.js";

const DAY = 86_400; // s
const FOLDERS = [t("Pinned"), t("Today"), t("Yesterday"), t("Last 7 days"), t("Last 30 days"), t("Older"), t("Found in messages")];
const PAUSE = 250; // ms after the last key until messages are searched

/** Return the title of a chat. */
export function titleOf(chat) {
  return chat.title || chat.preview || t("New chat");
}

/** The chats of this host. `choose(id)`, `remove(chat)` and `fail(error)` are called for the user's acts. */
export class ChatList {
  #folders = new Map();
  #kept = new Keyed("updated_at", "last_active");
  #acts;
  #signal;
  #open = null;
  #found = []; // hits of the search
  #pause = 0;
  #nothing = h("p", { class: "sub", role: "status" });
  #lists = h("div", { class: "sessions" });
  #search = h("input", { type: "search", "aria-label": t("Search chats"), placeholder: t("Search chats") });
  #archived = h("button", { class: "quiet", type: "button", "aria-pressed": "false" }, icon("box"), t("Archived"));

  constructor(signal, acts) {
    this.#signal = signal;
    this.#acts = acts;
    this.chats = [];
    const fresh = h("button", { class: "main", type: "button", onclick: () => acts.choose(null) }, icon("plus"), t("New chat"));
    this.element = h("div", { class: "rooms" }, fresh, this.#search, this.#lists, this.#archived);
    this.#search.addEventListener("input", () => this.#searchSoon());
    this.#archived.addEventListener("click", () => {
      this.#archived.ariaPressed = `${this.#archived.ariaPressed !== "true"}`;
      this.chats = [];
      this.load();
    });
  }

  /** Read the list; report whether it could be read. */
  async load() {
    const archived = this.#archived.ariaPressed === "true";
    try {
      const { sessions } = await agent("GET", `/sessions${archived ? "?archived=only" : ""}`, undefined, this.#signal);
      this.chats = sessions ?? [];
      this.show();
      return true;
    } catch (error) {
      this.#acts.fail(error);
      return false;
    }
  }

  /** Put a chat into the list before the server lists it. */
  add(chat) {
    this.chats = [chat, ...this.chats];
    this.show();
  }

  /** Return the chat of an id. */
  find(id) {
    return this.chats.find((each) => each.id === id);
  }

  /** Mark the open chat. */
  mark(id) {
    this.#open = id;
    for (const item of this.#lists.querySelectorAll(".chat-title")) item.setAttribute("aria-current", `${item.dataset.id === id}`);
  }

  /** Show the chats, or those with the searched words in the title or in a message. */
  show() {
    const words = this.#search.value.trim().toLowerCase();
    const hits = new Map(this.#found.map((each) => [each.session_id, each]));
    const listed = this.chats
      .filter((each) => !words || titleOf(each).toLowerCase().includes(words) || hits.has(each.id))
      .map((each) => ({ ...each, snippet: hits.get(each.id)?.snippet }));
    const known = new Set(this.chats.map((each) => each.id));
    const others = [...hits.values()].filter((each) => !known.has(each.session_id))
      .map((each) => ({ id: each.session_id, title: each.session_title, snippet: each.snippet, updated_at: each.timestamp, elsewhere: true }));
    const all = [...listed, ...others];
    const nodes = this.#kept.nodes(all, (each) => each.id, (live) => chatItem(live, this.#acts));
    const filled = FOLDERS.map((name) => [name, nodes.filter((_, place) => folderOf(all[place]) === name)]).filter(([, items]) => items.length);
    reconcile(this.#lists, filled.length ? filled.map(([name, items]) => this.#folder(name, items)) : [this.#nothing]);
    this.#nothing.textContent = words ? t("Nothing found") : this.#archived.ariaPressed === "true" ? t("No chat is archived") : "";
    this.mark(this.#open);
  }

  #folder(name, items) {
    if (!this.#folders.has(name)) {
      this.#folders.set(name, h("section", { "aria-label": name }, h("h3", {}, name), h("ul")));
    }
    const folder = this.#folders.get(name);
    reconcile(folder.lastChild, items);
    return folder;
  }

  #searchSoon() {
    clearTimeout(this.#pause);
    this.#found = [];
    this.show();
    const words = this.#search.value.trim();
    if (words) this.#pause = setTimeout(() => this.#searchMessages(words), PAUSE);
  }

  async #searchMessages(words) {
    try {
      const hits = await agent("GET", `/sessions/search?q=${encodeURIComponent(words)}`, undefined, this.#signal);
      if (this.#search.value.trim() !== words) return;
      this.#found = (hits.results ?? []).toReversed(); // the first hit of a chat is the last to be put
      this.show();
    } catch (error) {
      this.#acts.fail(error);
    }
  }
}

function folderOf(chat) {
  if (chat.elsewhere) return t("Found in messages");
  if (chat.pinned) return t("Pinned");
  const midnight = new Date(now() * 1000).setHours(0, 0, 0, 0) / 1000;
  const passed = midnight - (seconds(chat.updated_at) ?? 0);
  return passed <= 0 ? t("Today") : passed <= DAY ? t("Yesterday") : passed <= 7 * DAY ? t("Last 7 days") : passed <= 30 * DAY ? t("Last 30 days") : t("Older");
}

function chatItem(live, { choose, remove }) {
  const chat = live.item;
  const title = titleOf(chat);
  const below = chat.snippet ? h("small", { class: "snippet" }, marked(chat.snippet)) : h("small", {}, ago(chat.updated_at));
  return h("li", {},
    h("button", { type: "button", class: "chat-title", "data-id": chat.id, onclick: () => choose(chat.id) }, h("span", {}, title), below),
    h("button", { type: "button", class: "quiet round small", "aria-label": t("Delete {name}", { name: title }), onclick: () => remove(chat) }, icon("trash")));
}

/** Build a snippet, whose hits are between `>>>` and `<<<`. */
function marked(snippet) {
  return snippet.split(/>>>(.*?)<<</s).map((part, place) => (place % 2 ? h("mark", {}, part) : part));
}

// The head of the open chat: title, model, and what can be done with the chat as a whole.

import { h, icon, put } from "./dom.js";
import { titleOf } from "./chat_list.js";
import { exportMenu } from "./export.js";
import { t } from "./i18n.js";
import { agent } from "./net.js";

/** Head of a chat. `change(chat, members)` changes it at the server; `rowsOf(chat)` resolves to its stored messages. */
export class ChatHead {
  #chat = null;
  #title = h("h3", {});
  #model = h("span", { class: "sub" });
  #acts;
  #rename = this.#button("pen", t("Rename this chat"), () => this.#renaming());
  #pin = this.#button("pin", t("Pin this chat"), () => this.#acts.change(this.#chat, { pinned: !this.#chat.pinned }));
  #archive = this.#button("box", t("Archive this chat"), () => this.#acts.change(this.#chat, { archived: !this.#chat.archived }));
  #export;

  constructor(acts, signal) {
    this.#acts = acts;
    this.#export = exportMenu(async () => ({ title: titleOf(this.#chat), rows: await acts.rowsOf(this.#chat) }), acts.fail);
    this.element = h("div", { class: "talk-head" },
      h("div", { class: "talk-title" }, this.#title, this.#rename, this.#pin, this.#archive, this.#export), this.#model);
    agent("GET", "/model", undefined, signal).then((answer) => {
      put(this.#model, answer.model ? t("Model: {name}", { name: answer.model }) : answer.chat ? t("Model: built-in agent") : "");
    }, () => {});
  }

  /** Show the open chat; undefined for one that is not created yet. */
  show(chat) {
    if (chat?.id !== this.#chat?.id) this.element.querySelector("form")?.dispatchEvent(new Event("leave"));
    this.#chat = chat ?? null;
    put(this.#title, chat ? titleOf(chat) : t("New chat"));
    const naming = this.element.querySelector("form") !== null;
    for (const each of [this.#rename, this.#pin, this.#archive, this.#export]) each.hidden = !chat || naming;
    this.#pin.ariaPressed = `${Boolean(chat?.pinned)}`;
    this.#archive.ariaPressed = `${Boolean(chat?.archived)}`;
  }

  #button(picture, label, onclick) {
    return h("button", { type: "button", class: "quiet round small", "aria-label": label, title: label, hidden: true, onclick }, icon(picture));
  }

  #renaming() {
    const chat = this.#chat;
    const name = h("input", { "aria-label": t("Title"), value: titleOf(chat), maxlength: "200" });
    const naming = h("form", { class: "joined" }, name, h("button", { type: "submit" }, t("Save")));
    const end = (focus) => {
      naming.replaceWith(this.#title);
      this.show(this.#chat);
      if (focus) this.#rename.focus();
    };
    naming.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      end(true);
    });
    naming.addEventListener("leave", () => end(false));
    naming.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await this.#acts.change(chat, { title: name.value.trim() })) end(true);
    });
    this.#title.replaceWith(naming);
    this.show(chat);
    name.select();
  }
}

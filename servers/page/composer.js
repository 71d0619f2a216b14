// The composer: the message with its files, sent by Enter, and the button that stops a turn.

import { h, icon } from "./dom.js";
import { draftOf, keepDraft } from "./drafts.js";
import { t } from "./i18n.js";
import { Attachments } from "./pictures.js";

const TALLEST = 200; // px of the text field

/** Composer of messages. `send(content)` sends one, `stop()` ends the turn, `fail(error)` reports a file's problem. */
export class Composer {
  #session = null;
  #attachments;
  #stop = h("button", { class: "round stop", type: "button", "aria-label": t("Stop"), title: t("Stop (Esc)"), hidden: true }, icon("stop"));
  #send = h("button", { class: "main round", type: "submit", "aria-label": t("Send") }, icon("send"));

  constructor({ send, stop, fail }) {
    const box = (this.box = h("textarea", { rows: "1", "aria-label": t("Message"), placeholder: t("Message the agent"), enterkeyhint: "send" }));
    this.#attachments = new Attachments((words) => fail(new Error(words)));
    this.element = h("form", { class: "composer" }, this.#attachments.element, this.#attachments.button, this.#attachments.camera, box, this.#stop, this.#send);
    const submit = (event) => {
      event.preventDefault();
      send();
    };
    box.addEventListener("input", () => {
      this.#grow();
      this.keep();
    });
    box.addEventListener("paste", (event) => {
      if (!event.clipboardData.files.length) return;
      event.preventDefault();
      this.#attachments.add(event.clipboardData.files);
    });
    box.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event); });
    this.element.addEventListener("submit", submit);
    this.#stop.addEventListener("click", stop);
  }

  /** Attach files that are dropped on `place`. */
  acceptDrops(place) {
    const over = (on) => place.classList.toggle("dropping", on);
    place.addEventListener("dragover", (event) => {
      event.preventDefault();
      over(true);
    });
    place.addEventListener("dragleave", (event) => { if (!place.contains(event.relatedTarget)) over(false); });
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      this.#attachments.add(event.dataTransfer.files);
    });
  }

  /** Show the draft of a chat; null: of a new one. */
  open(session) {
    this.#session = session;
    this.box.value = draftOf(session);
    this.#grow();
  }

  /** Keep the present words as the draft; a sent message is kept until the server has begun its turn. */
  keep() {
    keepDraft(this.#session, this.box.value);
  }

  /** Set the id of the chat that was new. */
  created(session) {
    keepDraft(null, "");
    this.#session = session;
  }

  /** Report whether there is something to send. */
  get isFilled() {
    return this.box.value.trim() !== "" || this.#attachments.count > 0;
  }

  /** Return the message with its files, and clear the composer. */
  take() {
    const content = this.#attachments.message(this.box.value);
    this.box.value = "";
    this.#grow();
    return content;
  }

  /** Show the state: `busy` while this page streams a turn, `stoppable` while a turn goes on. */
  show(busy, stoppable) {
    this.#send.hidden = busy;
    this.#stop.hidden = !stoppable;
    this.#stop.disabled = false;
  }

  /** Report whether a turn can be stopped now. */
  get isStoppable() {
    return !this.#stop.hidden && !this.#stop.disabled;
  }

  /** Allow or forbid to stop: a stop that is under way is not asked for again. */
  set stopping(on) {
    this.#stop.disabled = on;
  }

  #grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, TALLEST)}px`;
  }
}

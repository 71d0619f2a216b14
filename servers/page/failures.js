// Report of what failed in the chat. The report of an outage goes when the server answers again.

import { h } from "./dom.js";
import { t } from "./i18n.js";

const OUTAGE = [0, 502, 503, 504]; // states of a server that may come back by itself
const RECOVER = 3000; // ms between two attempts during an outage

/** Report whether an error may pass by itself. */
export function isOutage(error) {
  return OUTAGE.includes(error.status);
}

/** The report; during an outage `retry()` is called again and again, and at its button. */
export class Failures {
  #retry;
  #signal;
  #timer = 0;
  #passes = false;

  constructor(retry, signal) {
    this.#retry = retry;
    this.#signal = signal;
    this.element = h("div", { class: "problem", role: "alert", hidden: true });
  }

  /** Show an error. */
  show(error) {
    if (this.#signal.aborted) return;
    this.#passes = isOutage(error);
    this.element.replaceChildren(h("span", {}, error.message), this.#passes ? h("button", { type: "button", onclick: () => this.#retry() }, t("Retry")) : "");
    this.element.hidden = false;
    clearTimeout(this.#timer);
    if (this.#passes) this.#timer = setTimeout(() => this.#retry(), RECOVER);
  }

  /** Hide the report of an outage that is over. */
  recovered() {
    if (this.#passes) this.element.hidden = true;
  }
}

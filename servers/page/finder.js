// Search, order and paging of a long list: only one page of it is drawn.

import { h } from "./dom.js";
import { t } from "./i18n.js";

const FEW = 8; // items up to which a list needs no tools

/**
 * Tools above (`head`) and below (`foot`) a list. `words(item)` is the text that a search looks into, `orders` are
 * `[title, compare]`, and `draw(items, searched)` shows the items of a page.
 */
export class Finder {
  #all = [];
  #page = 0;
  #size;
  #words;
  #orders;
  #draw;
  #search;
  #order;
  #count = h("span", { class: "sub", role: "status" });
  #before = h("button", { type: "button", class: "small", onclick: () => this.#turn(-1) }, t("Previous"));
  #after = h("button", { type: "button", class: "small", onclick: () => this.#turn(1) }, t("Next"));

  constructor(label, { size = 25, words, orders = [], draw }) {
    this.#size = size;
    this.#words = words;
    this.#orders = orders;
    this.#draw = draw;
    this.#search = h("input", { type: "search", "aria-label": label, placeholder: label, autocomplete: "off", oninput: () => this.#turn(0) });
    this.#order = h("select", { "aria-label": t("Order"), onchange: () => this.#turn(0) }, orders.map(([title], place) => h("option", { value: place }, title)));
    this.head = h("div", { class: "finder", role: "search" }, this.#search, orders.length > 1 && this.#order);
    this.foot = h("div", { class: "pager" }, this.#count, this.#before, this.#after);
  }

  /** Show the present items; page, order and search stay. */
  show(items) {
    this.#all = items;
    const few = items.length <= FEW && !this.#search.value;
    this.head.hidden = few;
    this.foot.hidden = few;
    this.#list();
  }

  #turn(step) {
    this.#page = step ? this.#page + step : 0;
    this.#list();
  }

  #list() {
    const wanted = this.#search.value.trim().toLowerCase();
    const found = wanted ? this.#all.filter((item) => this.#words(item).toLowerCase().includes(wanted)) : this.#all;
    const compare = this.#orders[Number(this.#order.value)]?.[1];
    const sorted = compare ? found.toSorted(compare) : found;
    const last = Math.max(0, Math.ceil(sorted.length / this.#size) - 1);
    this.#page = Math.min(Math.max(this.#page, 0), last);
    const start = this.#page * this.#size;
    const shown = sorted.slice(start, start + this.#size);
    this.#before.disabled = this.#page === 0;
    this.#after.disabled = this.#page === last;
    this.#count.textContent = shown.length
      ? t("{first} to {last} of {count}", { first: start + 1, last: start + shown.length, count: sorted.length })
      : t("None found");
    this.#draw(shown, Boolean(wanted));
  }
}

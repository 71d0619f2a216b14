// Common parts of tabs with polled data: loading, error and empty states, and Refresh without auto-refresh.

import { announce, h, icon } from "./dom.js";
import { t } from "./i18n.js";
import { Poller } from "./net.js";

/**
 * Fill `room` with data. `load(signal)` fetches, `render(data)` shows it in `content`, which appears with the first
 * data. An error is shown above the previous data, which may be out of date. The room is `aria-busy` while loading.
 */
export function dataView(room, { every, auto, load, content, render }) {
  const problem = h("div", { class: "problem", hidden: true });
  const refresh = h("button", { class: "quiet refresh", type: "button" }, icon("refresh"), t("Refresh"));
  const waiting = h("div", { class: "waiting", role: "status" }, h("span", { class: "aside" }, t("Loading")), bars());
  let shown = false;
  refresh.hidden = auto;
  room.append(refresh, problem, waiting);

  const poller = new Poller(
    every,
    auto,
    (signal) => {
      room.ariaBusy = "true";
      return load(signal);
    },
    (data) => {
      room.ariaBusy = "false";
      problem.hidden = true;
      room.classList.remove("stale");
      if (!shown) waiting.replaceWith(content);
      shown = true;
      refresh.disabled = false;
      render(data);
    },
    (error) => {
      room.ariaBusy = "false";
      waiting.remove();
      refresh.disabled = false;
      room.classList.add("stale");
      if (!problem.hidden && problem.dataset.said === error.message) return;
      problem.dataset.said = error.message;
      const retry = h("button", { type: "button", onclick: again }, t("Retry"));
      problem.replaceChildren(
        h("div", { role: "alert" }, h("strong", {}, `${t("This could not be loaded.")} `), h("span", {}, error.message)),
        retry,
      );
      problem.hidden = false;
      if (shown) problem.firstChild.append(h("span", {}, ` ${t("What you see below is older.")}`));
    },
  );

  function again() {
    refresh.disabled = true;
    if (!shown && !waiting.isConnected) problem.after(waiting);
    announce(t("Loading"));
    return poller.now();
  }

  refresh.addEventListener("click", again);
  if (every === Infinity) refresh.hidden = true;
  return {
    refresh: () => poller.now(),
    auto: (on) => {
      refresh.hidden = on || every === Infinity;
      poller.auto = on && every !== Infinity;
    },
    close: () => poller.stop(),
  };
}

/** Build the placeholder of an empty view. */
export function empty(picture, title, text, ...more) {
  return h("div", { class: "empty" }, icon(picture), h("h3", {}, title), h("p", {}, text), ...more);
}

/** Show a dialog with a text and `more`, or with `action` a confirmation; the promise resolves to whether the user confirmed. */
export function ask(title, words, action, ...more) {
  const answer = (value, props, text) => h("button", { type: "button", ...props, onclick: () => dialog.close(value) }, text);
  const dialog = h("dialog", { class: "sure", role: "alertdialog", "aria-labelledby": "sure-title", "aria-describedby": "sure-words" },
    h("h2", { id: "sure-title" }, title),
    h("p", { id: "sure-words", class: "lead" }, words), more,
    h("div", { class: "foot" }, answer("", { autofocus: true }, action ? t("Cancel") : t("Close")), action ? answer("yes", { class: "main" }, action) : null));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue === "yes");
  }));
}

/** Build a coloured label. */
export function badge(kind, text, props = {}) {
  return h("span", { class: `badge ${kind}`, ...props }, text);
}

/**
 * Build a table whose rows become cards on narrow screens; its roles keep it a table for screen readers. `columns` are
 * the titles, an empty one for a column of buttons.
 */
export function table(label, columns) {
  const body = h("tbody", { role: "rowgroup" });
  const head = columns.map((title) =>
    h("th", { role: "columnheader", scope: "col" }, title || h("span", { class: "aside" }, t("Actions"))),
  );
  const element = h(
    "table",
    { role: "table", "aria-label": label },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
    body,
  );
  return { element: h("div", { class: "scroller" }, element), body, columns };
}

/** Build a row: `cells` are texts, elements, or `[text, { class }]`. */
export function row(columns, cells, props = {}) {
  const made = cells.map((cell, place) => {
    const [inside, more] = Array.isArray(cell) ? cell : [cell, {}];
    return h("td", { role: "cell", "data-label": columns[place], ...more }, h("div", { class: "cell" }, inside));
  });
  return h("tr", { role: "row", ...props }, made);
}

function bars() {
  return h("div", { class: "bars", "aria-hidden": "true" }, h("i"), h("i"), h("i"), h("i"));
}

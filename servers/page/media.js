// Media: the files that phones can fetch, and their remaining time.

import { h, Keyed, put, reconcile, ticking } from "./dom.js";
import { ago, clock, countdown, moment, now, seconds, size, text } from "./format.js";
import { t } from "./i18n.js";
import { relay } from "./net.js";
import { dataView, empty, row, table } from "./view.js";

const EVERY = 15; // s
const SOON = 60; // s
const COLUMNS = [t("File"), t("Kind"), t("Size"), t("Created"), t("Last fetched"), t("Time left"), t("Id")];

export function openMedia(room, auto) {
  const expired = h("input", { type: "checkbox", role: "switch" });
  const list = h("div");
  const content = h("div", {}, h("div", { class: "heading" }, h("h3", {}, t("Files handed to phones")), h("label", { class: "switch" }, expired, h("span", {}, t("Include expired")))), list);
  const files = table(t("Files"), COLUMNS);
  const kept = new Keyed("last_accessed");
  const nothing = empty("file", t("No file is waiting"), t("Screenshots, and files that the agent hands to a phone, stay here until they expire."));
  const view = dataView(room, {
    every: EVERY,
    auto,
    content,
    load: (signal) => relay("GET", `/media?include_expired=${expired.checked}`, undefined, signal),
    render: (data) => {
      const entries = Array.isArray(data) ? data : data.media ?? [];
      if (!entries.length) reconcile(list, [nothing]);
      else {
        reconcile(files.body, kept.nodes(entries, (each) => each.token, fileRow));
        reconcile(list, [files.element]);
      }
    },
  });
  expired.addEventListener("change", () => view.refresh());
  return view;
}

function fileRow(live) {
  const entry = live.item;
  return row(COLUMNS, [
    h("strong", { class: "name" }, baseName(entry.file_name)),
    [text(entry.content_type), { class: "mime" }],
    [size(entry.size), { class: "number" }],
    h("time", { title: moment(entry.created_at) }, clock(entry.created_at)),
    ticking(h("time"), (each) => {
      const fetched = live.item.last_accessed;
      put(each, (seconds(fetched) ?? 0) > (seconds(entry.created_at) ?? 0) ? ago(fetched) : t("not yet"), moment(fetched) ?? "");
    }),
    ticking(h("div", { class: "ttl-cell" }, h("span"), h("meter", { min: "0", max: "1", low: "0.1", optimum: "1", "aria-label": t("Time left") })), (each) => {
      timeLeft(each.firstChild, entry);
      each.lastChild.value = shareLeft(entry);
    }),
    h("code", {}, text(entry.token).slice(0, 8)),
  ]);
}

/** Show the remaining time of an entry in `element`. */
export function timeLeft(element, entry) {
  const end = seconds(entry.expires_at);
  const left = end === null ? Infinity : end - now();
  const over = entry.is_expired === true || left <= 0;
  element.className = `badge ttl ${over ? "gone" : left < SOON ? "bad" : "plain"}`;
  put(element, over ? t("expired") : left === Infinity ? "–" : countdown(left));
}

/** Return the remaining share of an entry's time, from 0 to 1. */
function shareLeft(entry) {
  const [begin, end] = [seconds(entry.created_at), seconds(entry.expires_at)];
  if (entry.is_expired === true || begin === null || end === null || end <= begin) return 0;
  return Math.max(0, Math.min(1, (end - now()) / (end - begin)));
}

function baseName(name) {
  return text(name).replaceAll("\\", "/").split("/").at(-1) || text(name);
}

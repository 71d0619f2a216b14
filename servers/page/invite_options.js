// Options of a new pairing code. The browser keeps those of the last code, and Settings changes them.

import { h } from "./dom.js";
import { t } from "./i18n.js";

const KEY = "svc-relay-pairing";

/** Routes that a code can contain, with their titles. */
export const MODES = [["auto", t("All routes")], ["lan", t("Local network")], ["mesh", t("Mesh VPN")], ["public", t("Public address")]];
/** What a device may do, with titles; grants as the relay has them. */
export const SCOPES = [["", t("Everything")], ["phone", t("Chat, voice, phone control")], ["chat", t("Chat alone")]];
/** Lifetimes of a session in s, with titles. */
export const SPANS = [["", t("As configured")], ["86400", t("A day")], ["604800", t("A week")], ["7776000", t("90 days")], ["0", t("For good")]];

/** Return the options of the last code. */
export function inviteOptions() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

/** Keep the options for the next code. */
export function keepInviteOptions(values) {
  try {
    localStorage.setItem(KEY, JSON.stringify(values));
  } catch { /* private window: the options are lost with the page */ }
}

/** Build the block of Settings: what a new code starts with. */
export function inviteBlock() {
  const select = (title, name, options) => {
    const box = h("select", { onchange: () => keepInviteOptions({ ...inviteOptions(), [name]: box.value }) },
      options.map(([value, words]) => h("option", { value, selected: value === (inviteOptions()[name] ?? options[0][0]) }, words)));
    return h("label", { class: "field" }, h("span", {}, title), box);
  };
  return h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("New devices"))),
    h("div", { class: "settings" }, select(t("May do"), "scope", SCOPES), select(t("Paired for"), "ttl", SPANS), select(t("Routes"), "mode", MODES),
      h("p", { class: "sub" }, t("A pairing code made in this browser starts with these."))));
}

// The frame of the page: tabs, theme, auto-refresh. Only the open tab exists; opening another closes it.

import { h, icon } from "./dom.js";
import { openActivity } from "./activity.js";
import { openAudit } from "./audit.js";
import { openChat } from "./chat.js";
import { t } from "./i18n.js";
import { openLoad } from "./load.js";
import { openManagement } from "./management.js";
import { openMedia } from "./media.js";
import { openPhones } from "./phones.js";
import { openSettings } from "./settings.js";
import { paintTheme, themeButton } from "./theme.js";

const TABS = [
  ["management", t("Management"), openManagement, "screen"],
  ["activity", t("Activity"), openActivity, "pulse"],
  ["audit", t("Audit"), openAudit, "shield"],
  ["media", t("Media"), openMedia, "file"],
  ["load", t("Load"), openLoad, "clock"],
  ["phone", t("Phone"), openPhones, "phone"],
  ["chat", t("Chat"), openChat, "chat"],
  ["settings", t("Settings"), openSettings, "tool"],
];
const AUTO_KEY = "svc-relay-autorefresh";

const panel = document.getElementById("panel");
const nav = document.getElementById("tabs");
const links = new Map();
let opened = null;

function recall(key, fallback) {
  try {
    return localStorage.getItem(key) ?? fallback;
  } catch {
    return fallback;
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch { /* private window: the setting is lost with the page */ }
}

// --- auto-refresh

let auto = recall(AUTO_KEY, "on") !== "off";

function autoSwitch() {
  const box = h("input", { type: "checkbox", role: "switch", id: "auto" });
  box.checked = auto;
  box.addEventListener("change", () => {
    auto = box.checked;
    remember(AUTO_KEY, auto ? "on" : "off");
    opened?.auto?.(auto);
  });
  return h("label", { class: "switch" }, box, h("span", {}, t("Auto-refresh")));
}

// --- tabs

/** Open a tab; `place` is the rest of the address after the tab's name: a chat's id. */
function open(name, place) {
  const [key, title, make] = TABS.find(([each]) => each === name) ?? TABS[0];
  if (opened?.key === key) {
    opened.go?.(place);
    return;
  }
  opened?.close();
  for (const [each, link] of links) {
    if (each === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  links.get(key).scrollIntoView({ block: "nearest", inline: "nearest" });
  const room = h("div", { class: `tab ${key}` });
  panel.replaceChildren(h("h2", { class: "aside" }, title), room);
  document.title = `${title} · Relay`;
  opened = { key, ...make(room, auto, place) };
}

function route() {
  const [name, ...place] = location.hash.slice(1).split("/");
  open(name, place.join("/"));
}

nav.append(
  h("ul", {}, TABS.map(([key, title, , picture]) => {
    const link = h("a", { href: `#${key}`, title }, icon(picture), h("span", {}, title));
    links.set(key, link);
    return h("li", {}, link);
  })),
);
document.querySelector(".title p").textContent = t("Your paired devices, and what the agent does with them.");
document.querySelector(".skip").textContent = t("Skip to the content");
nav.ariaLabel = t("Dashboard");
document.getElementById("tools").append(autoSwitch(), themeButton());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash names the open tab
  panel.focus();
});
paintTheme();
addEventListener("hashchange", route);
route();

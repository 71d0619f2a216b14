// The frame of the page: tabs, theme, auto-refresh. Only the open tab exists; opening another closes it.

import { h, icon } from "./dom.js";
import { openActivity } from "./activity.js";
import { openChat } from "./chat.js";
import { openLoad } from "./load.js";
import { openManagement } from "./management.js";
import { openMedia } from "./media.js";
import { openPhone } from "./phone.js";

const TABS = [
  ["management", "Management", openManagement],
  ["activity", "Activity", openActivity],
  ["media", "Media", openMedia],
  ["load", "Load", openLoad],
  ["phone", "Phone", openPhone],
  ["chat", "Chat", openChat],
];
const AUTO_KEY = "svc-relay-autorefresh";
const THEME_KEY = "svc-relay-theme";
const THEMES = [["system", "auto"], ["light", "sun"], ["dark", "moon"]];

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

// --- theme and auto-refresh

let theme = recall(THEME_KEY, "system");
let auto = recall(AUTO_KEY, "on") !== "off";

function paint() {
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
}

function themeButton() {
  const button = h("button", { class: "round", type: "button" });
  const show = () => {
    const [name, picture] = THEMES.find(([each]) => each === theme) ?? THEMES[0];
    button.replaceChildren(icon(picture));
    button.setAttribute("aria-label", `Theme: ${name}`);
    button.title = `Theme: ${name}`;
  };
  button.addEventListener("click", () => {
    const place = THEMES.findIndex(([each]) => each === theme);
    theme = THEMES[(place + 1) % THEMES.length][0];
    remember(THEME_KEY, theme);
    paint();
    show();
  });
  show();
  return button;
}

function autoSwitch() {
  const box = h("input", { type: "checkbox", role: "switch", id: "auto" });
  box.checked = auto;
  box.addEventListener("change", () => {
    auto = box.checked;
    remember(AUTO_KEY, auto ? "on" : "off");
    opened?.auto?.(auto);
  });
  return h("label", { class: "switch" }, box, h("span", {}, "Auto-refresh"));
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
  h("ul", {}, TABS.map(([key, title]) => {
    const link = h("a", { href: `#${key}` }, title);
    links.set(key, link);
    return h("li", {}, link);
  })),
);
document.getElementById("tools").append(autoSwitch(), themeButton());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash names the open tab
  panel.focus();
});
paint();
addEventListener("hashchange", route);
route();

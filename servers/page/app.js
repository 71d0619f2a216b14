// The frame of the page: tabs, theme, auto-refresh. Only the open tab exists; opening another closes it.

import { h, icon } from "./dom.js";
import { t } from "./i18n.js";
import { openManagement } from "./management.js";
import { health } from "./net.js";
import { paintTheme, themeButton } from "./theme.js";

// Key, title, icon, and the function that loads the module of a tab and resolves to its function `open…`.
const TABS = [
  ["management", t("Management"), "screen", async () => openManagement],
  ["activity", t("Activity"), "pulse", () => import("./activity.js").then((tab) => tab.openActivity)],
  ["audit", t("Audit"), "shield", () => import("./audit.js").then((tab) => tab.openAudit)],
  ["media", t("Media"), "file", () => import("./media.js").then((tab) => tab.openMedia)],
  ["load", t("Load"), "clock", () => import("./load.js").then((tab) => tab.openLoad)],
  ["phone", t("Phone"), "phone", () => withProse(import("./phones.js")).then((tab) => tab.openPhones)],
  ["chat", t("Chat"), "chat", () => withProse(import("./chat.js")).then((tab) => tab.openChat)],
  ["settings", t("Settings"), "tool", () => import("./settings.js").then((tab) => tab.openSettings)],
];
const IN_REACH = ["chat", "phone", "management", "activity"]; // tabs in the bar of a phone; "More" opens the others
const AHEAD = 3000; // ms until the service worker and the modules of the other tabs are loaded
const AUTO_KEY = "svc-relay-autorefresh";

const panel = document.getElementById("panel");
const nav = document.getElementById("tabs");
const links = new Map();
let opened = null; // what the open tab returned
let wanted = { key: "", place: "" }; // the tab that is open or being loaded

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
async function open(name, place) {
  const [key, title, , load] = TABS.find(([each]) => each === name) ?? TABS[0];
  if (wanted.key === key) {
    wanted.place = place;
    opened?.go?.(place);
    return;
  }
  opened?.close();
  opened = null;
  const mine = (wanted = { key, place });
  for (const [each, link] of links) {
    if (each === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showMore(false);
  links.get(key).scrollIntoView({ block: "nearest", inline: "nearest" });
  const room = h("div", { class: `tab ${key}` }, h("p", { class: "waiting", role: "status" }, t("Loading…")));
  panel.replaceChildren(h("h2", { class: "aside" }, title), room);
  document.title = `${title} · Relay`;
  const make = await load().catch(() => null);
  if (wanted !== mine) return;
  if (!make) { // browsers keep the failure of a module until the page is loaded again
    health().catch(() => {}); // opens the page of the sign-in if the sign-in is over
    room.replaceChildren(h("div", { class: "problem", role: "alert" }, h("span", {}, t("The dashboard does not answer. Is it still running?")),
      h("button", { type: "button", onclick: () => location.reload() }, t("Retry"))));
    return;
  }
  room.replaceChildren();
  opened = make(room, auto, mine.place);
}

/** Load the style sheet of conversations together with a module. */
async function withProse(module) {
  const sheet = document.head.querySelector("link[href$='chat.css']") ?? h("link", { rel: "stylesheet", href: "page/chat.css" });
  const styled = sheet.sheet ?? new Promise((done, failed) => {
    sheet.addEventListener("load", done);
    sheet.addEventListener("error", failed);
    document.head.append(sheet);
  });
  return (await Promise.all([module, styled]))[0];
}

function route() {
  const [name, ...place] = location.hash.slice(1).split("/");
  open(name, place.join("/"));
}

// --- the bar of a phone

const phones = matchMedia("(max-width: 40rem)"); // as in app.css
const others = h("ul", { id: "more", hidden: true });
const moreButton = h("button", { type: "button", "aria-controls": "more", onclick: () => showMore(others.hidden) }, icon("dots"), h("span", {}, t("More")));
const more = h("li", { class: "more" }, moreButton, others);
const bar = h("ul");

/** Show or hide the tabs that a phone's bar has no place for. */
function showMore(shown) {
  if (!shown && others.contains(document.activeElement)) moreButton.focus();
  others.hidden = !shown;
  moreButton.setAttribute("aria-expanded", String(shown));
  if (wanted.key && !IN_REACH.includes(wanted.key)) moreButton.setAttribute("aria-current", "true");
  else moreButton.removeAttribute("aria-current");
}

/** Put the tabs in one row, or on a phone those in reach and the others below "More". */
function arrange() {
  const items = (keys) => keys.map((key) => links.get(key).parentElement);
  const keys = TABS.map(([key]) => key);
  bar.replaceChildren(...phones.matches ? [...items(IN_REACH), more] : items(keys));
  others.replaceChildren(...phones.matches ? items(keys.filter((key) => !IN_REACH.includes(key))) : []);
  showMore(false);
}

for (const [key, title, picture] of TABS) {
  const link = h("a", { href: `#${key}`, title }, icon(picture), h("span", {}, title));
  links.set(key, link);
  h("li", {}, link);
}
nav.append(bar);
arrange();
phones.addEventListener("change", arrange);
nav.addEventListener("keydown", (event) => { if (event.key === "Escape" && !others.hidden) showMore(false); });
document.addEventListener("focusin", (event) => { if (!others.hidden && !more.contains(event.target)) showMore(false); });
document.addEventListener("click", (event) => { if (!others.hidden && (others.contains(event.target) || !more.contains(event.target))) showMore(false); });
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
setTimeout(() => {
  import("./offline.js").then(({ keepPage }) => keepPage()).catch(() => {}) // a browser may refuse it: the page works without
    .finally(() => { for (const [, , , load] of TABS) load().catch(() => {}); });
}, AHEAD);

// Phone: each connected phone with its state, its screen, its notifications and its latest commands. The reference
// phone of this host (`svc phone`) shows its screen live.

import { h, Keyed, put, reconcile, ticking } from "./dom.js";
import { decisionBadge } from "./activity.js";
import { ago, clock, DASH, moment, plain, text } from "./format.js";
import { t } from "./i18n.js";
import { Poller, relay } from "./net.js";
import { openPhone } from "./phone.js";
import { appName, deed } from "./sentences.js";
import { screenOf } from "./takeover.js";

const EVERY = 5; // s
const COMMANDS = 50; // of all phones, that are asked for
const LINES = 8; // of each list

export function openPhones(room, auto) {
  room.classList.remove("phone");
  const live = h("div", { class: "tab phone" });
  const choice = h("div", { class: "chips", role: "group", "aria-label": t("Phones") });
  const cards = h("div", { class: "cards" });
  const set = [t("State"), t("Battery"), t("Device Control")].map((title) => {
    const [value, more] = [h("dd", { class: "value" }, DASH), h("dd", { class: "hint" })];
    cards.append(h("dl", { class: "card" }, h("dt", {}, title), value, more));
    return (main, hint) => { put(value, main); put(more, hint); };
  });
  const news = listOf(t("Notifications"), t("No phone has passed on a notification."));
  const deeds = listOf(t("Latest commands"), t("No command to this phone yet."));
  const lists = h("div", { class: "sides" }, news.element, deeds.element);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const screens = new Map(); // by id of the phone
  let reference = null; // name of the reference phone, while it answers
  let wanted = null;
  let data = { phones: [], notifications: [], activity: [] };

  room.append(live);
  const own = openPhone(live, (name) => {
    if (name === reference) return;
    reference = name;
    draw();
  });
  const poller = new Poller(EVERY, auto, async (signal) => {
    const [phones, recent, commands] = await Promise.all([
      relay("GET", "/phones", undefined, signal),
      relay("GET", "/notifications?limit=20", undefined, signal),
      relay("GET", `/bridge-activity?limit=${COMMANDS}`, undefined, signal),
    ]);
    const rows = (value) => (Array.isArray(value) ? value : []);
    return { phones: rows(phones.devices), notifications: rows(recent.notifications), activity: rows(commands.activity) };
  }, (found) => {
    data = found;
    problem.hidden = true;
    draw();
  }, (error) => {
    put(problem, error.message);
    problem.hidden = reference !== null; // its screen does not need the relay
    draw();
  });

  function draw() {
    const all = data.phones.map((phone) => ({ id: text(phone.device?.device_id), name: text(phone.device?.name), phone }));
    if (reference !== null && !all.some(({ name }) => name === reference)) all.push({ id: "", name: reference, phone: null });
    const chosen = all.find(({ id }) => id === wanted) ?? all.find(({ name }) => name === reference) ?? all.find(({ phone }) => phone?.active) ?? all[0];
    reconcile(choice, all.map(({ id, name }) => h("button", { type: "button", class: "chip", "aria-pressed": `${id === chosen.id}`, onclick: () => { wanted = id; draw(); } }, plain(name))));
    const isLive = !chosen || chosen.name === reference;
    for (const [id, screen] of screens) {
      if (id === chosen?.id && !isLive) continue;
      screen.close();
      screens.delete(id);
    }
    const parts = [problem];
    if (all.length > 1) parts.push(choice);
    if (chosen?.phone && !isLive) parts.push(cards); // the live screen has them beside it
    if (chosen?.phone && !isLive) parts.push(screenFor(chosen));
    if (isLive) parts.push(live);
    if (chosen?.phone) {
      describe(chosen.phone);
      parts.push(lists);
    }
    reconcile(room, parts);
  }

  function commandsOf({ id, name }) {
    return data.activity.filter((each) => each.device_id === id || each.device_name === name);
  }

  function screenFor(chosen) {
    if (!screens.has(chosen.id)) screens.set(chosen.id, screenOf(chosen.id, chosen.name));
    const screen = screens.get(chosen.id);
    screen.show(chosen.phone, commandsOf(chosen).find((each) => each.path === "/screenshot" && each.decision !== "error"));
    return screen.element;
  }

  function describe(phone) {
    const { device = {}, bridge = {} } = phone;
    set[0](t("Online"), typeof phone.last_seen_seconds_ago === "number" ? t("Last report {when}", { when: ago(Date.now() / 1000 - phone.last_seen_seconds_ago) }) : "");
    set[1](typeof device.battery_percent === "number" ? `${device.battery_percent} %` : DASH, device.screen_on === false ? t("Display off") : "");
    set[2](bridge.device_control_supported === false ? t("Not in this build") : bridge.master_enabled === true ? t("On") : t("Off"), "");
    news.show(data.notifications.slice(0, LINES), (each) => h("li", {}, h("strong", { class: "name" }, appName(text(each.package_name))), " ",
      plain(text(each.title)), h("div", { class: "sub" }, plain(text(each.text))), h("time", { class: "sub", title: moment(each.posted_at) }, clock(each.posted_at))));
    deeds.show(commandsOf({ id: text(device.device_id), name: text(device.name) }).slice(0, LINES), (each) => h("li", {}, h("span", { class: "deed" }, deed(each)), " ", decisionBadge(each.decision),
      ticking(h("time", { class: "sub", title: moment(each.sent_at) }), (time) => put(time, ` ${ago(each.sent_at)}`))));
  }

  return {
    close: () => {
      own.close();
      poller.stop();
      for (const screen of screens.values()) screen.close();
    },
    auto: (on) => { poller.auto = on; },
  };
}

function listOf(title, none) {
  const kept = new Keyed();
  const list = h("ul", { class: "news" });
  const nothing = h("p", { class: "sub" }, none);
  const element = h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, title)), list, nothing);
  return {
    element,
    show(items, make) {
      nothing.hidden = items.length > 0;
      reconcile(list, kept.nodes(items, (each) => `${each.request_id ?? each.key} ${each.sent_at ?? each.posted_at}`, ({ item }) => make(item)));
    },
  };
}

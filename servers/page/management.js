// Management: state of phone, model and relay; paired devices; pairing and revocation.

import { deviceList } from "./devices.js";
import { announce, h, icon, reconcile } from "./dom.js";
import { DASH, text, uptime } from "./format.js";
import { hostHealth } from "./health.js";
import { t } from "./i18n.js";
import { agent, relay, signIns } from "./net.js";
import { badge, dataView, empty, row, table } from "./view.js";

const EVERY = 10; // s
const SOONER = 2000; // ms between two requests while the pairing dialog is open
const SERVERS = [t("MCP server"), t("State"), t("Tools")];

export function openManagement(room, auto) {
  const cards = h("div", { class: "cards" });
  const count = h("span", { class: "count" });
  const pairButton = h("button", { class: "main", type: "button" }, icon("plus"), t("Pair new device"));
  const list = h("div");
  const content = h(
    "div",
    {},
    h("section", { "aria-label": t("Phone, model and relay") }, cards),
    h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Paired devices"), count), h("a", { href: "allow" }, t("Allow an agent")), pairButton), list),
  );
  const reload = h("button", { class: "quiet", type: "button" }, t("Restart"));
  const others = table(t("MCP servers"), SERVERS);
  const block = h("section", { class: "block", hidden: true }, h("div", { class: "heading" }, h("h3", {}, t("MCP servers")), reload), others.element);
  const devices = deviceList(() => view.refresh());
  const nothing = empty("phone", t("No device is paired"), t("Pair a phone with a QR code. It takes a minute. No phone at hand? Run svc phone on this host."));
  const frame = [...content.childNodes];
  const statistics = cardsOf(cards);
  const clients = h("div");
  let signedIn = null;
  const host = hostHealth(() => view.refresh());
  let pairing = null;
  let hasApi = false; // an API server, which stores the defaults of new codes

  const view = dataView(room, {
    every: EVERY,
    auto,
    content,
    load: async (signal) => {
      const [overview, sessions, phones, answering] = await Promise.all([
        relay("GET", "/overview", undefined, signal),
        relay("GET", "/sessions", undefined, signal),
        relay("GET", "/phones", undefined, signal),
        agent("GET", "/model", undefined, signal).catch((error) => ({ problem: error.message })),
        host.load(),
      ]);
      const chat = { ...answering, check: host.modelProblem() };
      hasApi = chat.chat === true;
      loadOthers(chat, signal);
      const there = Array.isArray(sessions) ? sessions : sessions.sessions ?? [];
      return { overview, chat, phones: phones.devices ?? [], sessions: there };
    },
    render: ({ overview, sessions, phones, chat }) => {
      statistics(overview, sessions, phones, chat);
      count.textContent = sessions.length ? ` ${sessions.length}` : "";
      if (!sessions.length) reconcile(list, [nothing]);
      else {
        devices.show(sessions);
        reconcile(list, [devices.element]);
      }
      pairing?.seen(sessions);
      reconcile(content, [frame[0], host.render(), ...frame.slice(1), block, clients].filter(Boolean));
    },
  });

  /** Show the MCP servers and the signed-in clients when they are known; the other parts of the tab do not wait. */
  function loadOthers({ chat }, signal) {
    const none = () => ({});
    signIns("GET", "", signal).catch(none).then(async ({ sessions }) => {
      if (!Array.isArray(sessions)) return;
      signedIn ??= (await import("./sign_ins.js")).signInBlock();
      reconcile(clients, [signedIn(sessions, () => view.refresh())].filter(Boolean));
    });
    if (chat) agent("GET", "/mcp-servers", undefined, signal).catch(none).then(({ servers }) => {
      reconcile(others.body, Array.isArray(servers) ? servers.map(serverRow) : []);
      block.hidden = !others.body.childElementCount;
    });
  }

  reload.addEventListener("click", async () => {
    reload.disabled = true;
    await agent("POST", "/mcp-servers/reload", {}).catch((error) => announce(error.message));
    reload.disabled = false;
    view.refresh();
  });
  pairButton.addEventListener("click", async () => {
    const [{ openPairing }, options] = await Promise.all([import("./pair.js"), import("./invite_options.js").then(({ inviteOptions, startOptions }) => hasApi ? startOptions() : inviteOptions())]);
    if (pairing || !room.isConnected) return;
    const watch = setInterval(() => view.refresh(), SOONER);
    pairing = openPairing(options, () => {
      clearInterval(watch);
      pairing = null;
      view.refresh();
    });
  });
  return { ...view, close: () => { pairing?.close(); view.close(); } };
}

// --- the cards

function cardsOf(parent) {
  const card = (title) => {
    const value = h("dd", { class: "value" }, DASH);
    const hint = h("dd", { class: "hint" });
    parent.append(h("dl", { class: "card" }, h("dt", {}, title), value, hint));
    return (main, more, kind = "") => {
      value.textContent = main;
      hint.textContent = more;
      hint.className = `hint ${kind}`;
    };
  };
  const [ofPhone, ofModel, ofRelay, ofDevices] = [t("Phone"), t("Model"), t("Relay"), t("Paired devices")].map(card);
  return (info, sessions, phones, chat) => {
    ofPhone(...phoneSaid(phones));
    ofModel(...modelSaid(chat));
    const well = info.health === "ok";
    ofRelay(well ? t("Healthy") : t("Health: {state}", { state: text(info.health) }), [t("Version {version}, up {time}", { version: text(info.version), time: uptime(info.uptime_seconds) }),
      ...(info.public_route === true ? [t("public route: local programs show the local secret")] : [])].join(", "), well ? "good" : "bad");
    const online = sessions.filter((each) => each.online === true).length;
    const waiting = info.pending_commands > 0 ? [t("{count} commands wait", { count: info.pending_commands })] : [];
    ofDevices(text(info.paired_device_count ?? info.session_count), [t("{count} online", { count: online }), ...waiting].join(", "), online ? "good" : "");
  };
}

/** Describe the phone that the agent would use: its name, and whether Device Control is on. */
function phoneSaid(phones) {
  const chosen = phones.find((each) => each.active) ?? phones[0];
  if (!chosen) return [t("None is online"), t("Pair one, or try svc phone")];
  const { device = {}, bridge = {} } = chosen;
  const on = bridge.master_enabled === true;
  const words = [on ? t("Online, Device Control on") : t("Online, Device Control off")];
  if (typeof device.battery_percent === "number") words.push(t("battery {count} %", { count: device.battery_percent }));
  if (phones.length > 1) words.push(t("and {count} more", { count: phones.length - 1 }));
  return [text(device.name ?? chosen.device_name), words.join(", "), on ? "good" : ""];
}

function modelSaid(chat) {
  if (chat.problem) return [t("Does not answer"), chat.problem, "bad"];
  if (!chat.chat) return [t("No chat"), t("The dashboard runs without an API server")];
  if (chat.check) return [text(chat.model ?? t("Does not answer")), text(chat.check.found), "bad"];
  return chat.model ? [text(chat.model), t("Answers in the chat"), "good"] : [t("Built-in agent"), t("Answers until a model is connected"), "good"];
}

/** Build the row of an MCP server. */
function serverRow(server) {
  const tools = Array.isArray(server.tools) ? server.tools : [];
  const names = tools.map((tool) => tool.asks ? tool.name : t("{name} (no approval)", { name: tool.name })).join(", ");
  const left = server.left_out > 0 ? t(", {count} left out", { count: server.left_out }) : "";
  return row(SERVERS, [
    h("div", {}, h("strong", { class: "name" }, text(server.name)), h("div", { class: "sub" }, text(server.transport))),
    h("div", {}, badge({ ready: "good", failed: "bad", "not usable": "bad" }[server.state] ?? "plain", text(server.state)), h("div", { class: "sub" }, server.problem ?? "")),
    h("div", {}, `${tools.length}${left}`, h("div", { class: "sub" }, names)),
  ]);
}

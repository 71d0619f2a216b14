// Paired devices: list with search, order and pages; rename, extend, revoke, and undo what a device has changed.

import { announce, copyButton, h, icon, Keyed, put, reconcile, ticking } from "./dom.js";
import { ago, day, expiry, moment, plain, seconds, text } from "./format.js";
import { Finder } from "./finder.js";
import { AGENT, granted, grantsOf, urgency } from "./grants.js";
import { t } from "./i18n.js";
import { agent, relay, rotateKey } from "./net.js";
import { ask, badge, row, table } from "./view.js";

const COLUMNS = [t("Device"), t("Kind"), t("Last seen"), t("Expires"), t("May do"), ""];
const SPANS = [["", t("As it is")], ["86400", t("A day from now")], ["604800", t("A week from now")], ["7776000", t("90 days from now")], ["0", t("For good")]];
const MAX_NAME = 128; // characters
const LATER = Number.MAX_VALUE; // place of a session without an expiry

const byName = (one, other) => text(one.device_name).localeCompare(text(other.device_name));
const end = ({ expires_at: value }) => (value === null ? LATER : seconds(value) ?? LATER);
const ORDERS = [
  [t("Online first"), (one, other) => (other.online === true) - (one.online === true)],
  [t("By name"), byName],
  [t("Last seen first"), (one, other) => (seconds(other.last_seen) ?? 0) - (seconds(one.last_seen) ?? 0)],
  [t("Next to expire first"), (one, other) => end(one) - end(other)],
];

/** Build the list: `show(sessions)` draws a page of them. `refresh` reloads them after a change. */
export function deviceList(refresh) {
  const devices = table(t("Paired devices"), COLUMNS);
  const kept = new Keyed("last_seen");
  const none = h("p", { class: "bare", hidden: true }, t("No device matches."));
  const finder = new Finder(t("Search devices"), {
    words: (each) => [each.device_name, each.token_prefix, each.device_model, each.device_platform, granted(each.grants)].map(text).join(" "),
    orders: ORDERS,
    draw: (page) => {
      reconcile(devices.body, kept.nodes(page, (each) => each.token_prefix, (live) => deviceRow(live, refresh)));
      none.hidden = page.length > 0;
      devices.element.hidden = page.length === 0;
    },
  });
  return { element: h("div", {}, finder.head, devices.element, none, finder.foot), show: (sessions) => finder.show(sessions) };
}

function deviceRow(live, refresh) {
  const session = live.item;
  const prefix = text(session.token_prefix);
  const name = text(session.device_name);
  const about = [session.device_model, session.device_platform].filter((each) => typeof each === "string" && each && each !== "unknown");
  const revoke = h("button", { class: name === AGENT ? "quiet" : "danger", type: "button", "aria-label": t("Revoke {name}", { name }) }, t("Revoke"));
  revoke.addEventListener("click", () => part(revoke, name, prefix, refresh));
  const change = h("button", { class: "quiet round", type: "button", "aria-label": t("Change {name}", { name }), title: t("Rename or extend"), onclick: () => edit(live.item, refresh) }, icon("pen"));
  return row(COLUMNS, [
    h("div", {}, h("strong", { class: "name" }, name),
      session.is_current === true && badge("plain", t("This device")),
      name === AGENT && badge("plain", t("Not a device: the agent itself")),
      h("div", { class: "sub" }, h("code", {}, prefix), about.length ? ` · ${about.join(" · ")}` : "")),
    h("div", { class: "type" }, kindOf(session), h("div", { class: "sub", title: text(session.transport_hint) }, hint(session.transport_hint))),
    h("div", {}, session.online === true ? badge("good", t("Online"))
      : ticking(h("time"), (each) => put(each, ago(live.item.last_seen), moment(live.item.last_seen) ?? "")),
      h("div", { class: "sub since" }, `${t("Created")} `, h("time", { title: moment(session.created_at) }, day(session.created_at)))),
    ticking(h("span", { class: "badge" }), (each) => {
      each.className = `badge ${urgency(session.expires_at)}`;
      put(each, expiry(session.expires_at), moment(session.expires_at) ?? "");
    }),
    [h("details", { class: "grants" }, ticking(h("summary"), (each) => put(each, granted(session.grants))),
      h("ul", {}, grantsOf(session.grants).map(([channel, until]) =>
        h("li", {}, ticking(h("span", { class: "badge", title: moment(until) }, h("span", {}, channel), h("small")), (each) => {
          each.className = `badge ${urgency(until) === "bad" ? "gone" : "plain"}`;
          put(each.lastChild, ` ${expiry(until, true)}`);
        }))))), { class: "many" }],
    [h("div", { class: "actions" }, copyButton(prefix, null, { "aria-label": t("Copy prefix of {name}", { name }), title: t("Copy prefix") }), change, revoke), { class: "end" }],
  ]);
}

/** Show the dialog that renames or extends a device. */
function edit(session, refresh) {
  const before = text(session.device_name);
  const name = h("input", { value: before, maxlength: MAX_NAME, required: true, autocomplete: "off" });
  const span = h("select", {}, SPANS.map(([value, title]) => h("option", { value }, title)));
  const problem = h("p", { class: "error", role: "alert", hidden: true });
  const save = h("button", { class: "main", type: "submit" }, t("Save"));
  const form = h("form", { method: "dialog" },
    h("label", { class: "field" }, h("span", {}, t("Name")), name),
    h("label", { class: "field" }, h("span", {}, t("Paired until")), span), problem,
    h("div", { class: "foot" }, h("button", { type: "button", onclick: () => dialog.close() }, t("Cancel")), save));
  const dialog = h("dialog", { class: "sure", "aria-labelledby": "edit-title" }, h("h2", { id: "edit-title" }, t("Change {name}", { name: plain(before) })), form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const change = {};
    if (name.value.trim() !== before) change.device_name = name.value.trim();
    if (span.value) change.ttl_seconds = Number(span.value);
    save.disabled = true;
    try {
      if (Object.keys(change).length) await relay("PATCH", `/sessions/${encodeURIComponent(session.token_prefix)}`, change);
      announce(t("{name} is changed", { name: plain(before) }));
      dialog.close();
      refresh();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
    save.disabled = false;
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

async function part(button, name, prefix, refresh) {
  const who = plain(name);
  if (!await ask(t("Revoke {name}?", { name: `${who} (${plain(prefix)})` }), t("Its connection is closed at once, and it has to be paired again."), t("Revoke"))) return;
  button.disabled = true;
  button.textContent = t("Revoking…");
  try {
    const answer = await relay("DELETE", `/sessions/${encodeURIComponent(prefix)}`);
    announce(t("{name} is revoked", { name }));
    if (answer?.agent_changes > 0) await offerUndo(who, text(answer.revoked));
    if (answer?.knows_api_key === true) await offerNewKey(who);
  } catch (error) {
    ask(t("{name} was not revoked", { name: who }), error.message);
  }
  button.disabled = false;
  button.textContent = t("Revoke");
  refresh();
}

/** Show that a revoked device still has the API key, and make a new key if the owner wishes so. */
async function offerNewKey(who) {
  const sure = await ask(t("{name} is revoked", { name: who }), t("Its QR held the API's main key as well, with which it can go on to chat and to have the agent act."), t("Make a new key"),
    h("p", {}, t("The old one is refused at once. Phones and programs that use it need the new one: pair the phones again. The chat of this page goes on.")));
  if (!sure) return;
  try {
    await rotateKey();
    announce(t("There is a new API key; the old one is refused."));
  } catch (error) {
    ask(t("There is no new API key"), `${error.message} ${t("Make one on the host with: svc key rotate")}`);
  }
}

/** Show what a revoked device has changed at the agent, and undo it if the owner wishes so. */
async function offerUndo(who, principal) {
  const { changes } = await agent("GET", `/changes?principal=${encodeURIComponent(principal)}`);
  if (!changes.length) return;
  const undo = await ask(t("{name} is revoked", { name: who }), t("What it changed at the agent still holds:"), t("Undo these changes"), changeLines(changes));
  if (!undo) return;
  const done = await agent("POST", "/changes/undo", { principal });
  await ask(done.ok ? t("The changes are undone") : t("Not all changes could be undone"), "", "", changeLines(done.changes));
}

function changeLines(changes) {
  return h("ul", { class: "changes", tabindex: "0" }, changes.map((change) => h("li", {}, changeWords(change),
    change.undone === true && badge("good", t("Undone")), change.undone === false && badge("warn", text(change.why)))));
}

function changeWords({ kind, target, before, after }) {
  const [name, old, fresh] = [target, before, after].map((each) => plain(text(each)));
  if (kind === "approval") return t("Approval: {what}", { what: fresh });
  if (kind === "setting") return t("Setting {name}: {before} → {after}", { name, before: old, after: fresh });
  return t("Note in {name}: {before} → {after}", { name, before: old, after: fresh });
}

function hint(value) {
  return { wss: t("encrypted"), ws: t("not encrypted") }[value] ?? text(value);
}

/** Guess a device's kind from its surface, name, platform and grants (older relays report no surface). */
function kindOf(session) {
  const said = `${session.client_surface ?? ""} ${session.device_platform ?? ""}`.toLowerCase();
  const named = `${said} ${session.device_name ?? ""}`.toLowerCase();
  const grants = grantsOf(session.grants).map(([channel]) => channel);
  if (/desktop|\bcli\b|linux|macos|windows/.test(said)) return t("Desktop CLI");
  if (/android|quest|phone|pixel|galaxy/.test(named)) return "Android";
  if (named.includes("dashboard")) return t("Dashboard");
  if (/\btui\b/.test(named)) return t("Desktop TUI");
  if (/desktop|\bcli\b|linux|macos|windows/.test(named)) return t("Desktop CLI");
  return grants.includes("tui") && !grants.includes("bridge") ? t("Desktop TUI") : t("Client");
}

// Audit: standing approvals of the agent with their end, and the log of changes of access and settings.

import { announce, h, Keyed, put, reconcile, ticking } from "./dom.js";
import { Finder } from "./finder.js";
import { ago, clock, moment, plain, text } from "./format.js";
import { t } from "./i18n.js";
import { agent, relay } from "./net.js";
import { ask, dataView, empty, row, table } from "./view.js";

const EVERY = 15; // s
const LIMIT = 1000;
const SESSION = /^([0-9a-f]{8}) (.+)$/; // a principal that is a session: prefix and name
const APPROVALS = [t("Covers"), t("Holds"), t("Given by"), ""];
const EVENTS = [t("Event"), t("By"), t("Address"), t("When")];
const NAMES = {
  __proto__: null,
  paired: t("Paired"),
  "signed in": t("Signed in from a new address"),
  "agent allowed": t("Agent allowed"),
  "session changed": t("Session changed"),
  "session revoked": t("Session revoked"),
  "approval given": t("Approval given"),
  "approval ended": t("Approval ended"),
  "changes undone": t("Changes undone"),
  "setting changed": t("Setting changed"),
  "memory changed": t("Memory changed"),
  "key rotated": t("Key rotated"),
  "backup restored": t("Backup restored"),
};

export function openAudit(room, auto) {
  const approvals = table(t("Standing approvals"), APPROVALS);
  const events = table(t("Audit log"), EVENTS);
  const [keptApprovals, keptEvents] = [new Keyed(), new Keyed()];
  const unmatched = h("p", { class: "bare", hidden: true }, t("No event matches."));
  const nothing = empty("shield", t("No event yet"), t("Pairings, changed grants, revocations, approvals and settings are listed here."));
  const finder = new Finder(t("Search events"), {
    size: 50,
    words: (each) => `${named(each)} ${text(each.event)} ${text(each.principal)} ${text(each.address)} ${aboutOf(each)}`,
    draw: (page, searched) => {
      reconcile(events.body, keptEvents.nodes(page, (each) => `${each.at} ${each.event} ${aboutOf(each)}`, eventRow));
      events.element.hidden = page.length === 0;
      unmatched.hidden = page.length > 0 || !searched;
      nothing.hidden = page.length > 0 || searched;
    },
  });
  const given = finderOf(approvals, keptApprovals, () => view.refresh());
  const standing = h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Standing approvals"))),
    given.head, approvals.element, given.foot);
  const log = h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Audit log"))), finder.head, events.element, unmatched, nothing, finder.foot);
  const content = h("div");
  const view = dataView(room, {
    every: EVERY,
    auto,
    content,
    load: async (signal) => {
      const [audit, chat] = await Promise.all([
        relay("GET", `/audit?limit=${LIMIT}`, undefined, signal),
        agent("GET", "/model", undefined, signal).catch(() => ({})),
      ]);
      const held = chat.chat ? await agent("GET", "/approvals", undefined, signal).catch(() => ({})) : {};
      return { events: Array.isArray(audit.events) ? audit.events : [], approvals: Array.isArray(held.approvals) ? held.approvals : [] };
    },
    render: (data) => {
      finder.show(data.events);
      given.show(data.approvals);
      reconcile(content, data.approvals.length ? [standing, log] : [log]);
    },
  });
  return view;
}

function finderOf({ body }, kept, refresh) {
  return new Finder(t("Search approvals"), {
    words: (each) => `${text(each.pattern)} ${text(each.principal)}`,
    draw: (page) => reconcile(body, kept.nodes(page, (each) => `${each.session_id} ${each.pattern}`, ({ item }) => approvalRow(item, refresh))),
  });
}

function approvalRow(approval, refresh) {
  const pattern = text(approval.pattern);
  const button = h("button", { class: "danger", type: "button", "aria-label": t("End the approval of {what}", { what: plain(pattern) }) }, t("End"));
  button.addEventListener("click", async () => {
    if (!await ask(t("End this approval?"), t("The agent asks again before {what}.", { what: plain(pattern) }), t("End"))) return;
    button.disabled = true;
    await agent("DELETE", "/approvals", { pattern: approval.pattern, session_id: approval.session_id ?? null })
      .then(() => announce(t("The approval has ended")), (error) => ask(t("The approval has not ended"), error.message));
    refresh();
  });
  return row(APPROVALS, [
    h("code", { class: "name" }, pattern),
    approval.session_id ? t("In one chat") : t("For good"),
    h("div", {}, principalOf(approval), ticking(h("div", { class: "sub" }), (each) => put(each, ago(approval.at), moment(approval.at) ?? ""))),
    [h("div", { class: "actions" }, button), { class: "end" }],
  ]);
}

function eventRow({ item }) {
  return row(EVENTS, [
    h("div", {}, h("strong", { class: "name" }, named(item)), h("div", { class: "sub" }, aboutOf(item))),
    principalOf(item),
    text(item.address),
    h("div", {}, h("time", { title: moment(item.at) }, clock(item.at)),
      ticking(h("div", { class: "sub" }), (each) => put(each, ago(item.at), moment(item.at) ?? ""))),
  ]);
}

/** Build the name of a principal; the prefix of its session, if it has one, is below the name. */
function principalOf({ principal }) {
  const [, prefix, name] = SESSION.exec(text(principal)) ?? [];
  return h("div", {}, plain(name ?? text(principal)), prefix ? h("div", { class: "sub" }, h("code", {}, prefix)) : "");
}

function named({ event }) {
  return NAMES[event] ?? plain(text(event));
}

function aboutOf({ about }) {
  const pairs = about && typeof about === "object" ? Object.entries(about) : [];
  return pairs.map(([name, value]) => `${plain(name)}: ${plain(text(value))}`).join(", ");
}

// Options of a new pairing code. The host stores grants and lifetime; the browser keeps the others of the last code.

import { h, put } from "./dom.js";
import { span, text } from "./format.js";
import { t } from "./i18n.js";
import { agent } from "./net.js";

const KEY = "svc-relay-pairing";
const OF_HOST = { scope: "pair_scope", ttl: "pair_ttl" }; // options that the host stores, by field of the dialog

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

/** Return the options that a new code starts with: the host's, and those of the last code of this browser. */
export async function startOptions(signal) {
  try {
    keepHost(await agent("GET", "/host", undefined, signal));
  } catch { /* without the API server, the host's last answer counts */ }
  return inviteOptions();
}

/** Keep the host's grants and lifetime of new codes; return its rows by name. */
function keepHost({ settings }) {
  const rows = Object.fromEntries((Array.isArray(settings) ? settings : []).map((each) => [each.name, each]));
  const values = Object.entries(OF_HOST).filter(([, name]) => rows[name]).map(([field, name]) => [field, rows[name].value || ""]);
  keepInviteOptions({ ...inviteOptions(), ...Object.fromEntries(values) });
  return rows;
}

/** Return the choices of a field, with a lifetime of the host that is none of the usual ones. */
export function choicesOf(options, value) {
  return /^[0-9]+$/.test(value) && options === SPANS && !options.some(([each]) => each === value) ? [...options, [value, span(Number(value))]] : options;
}

/** Build the block of Settings: what a new code starts with. `signal` ends its requests. */
export function inviteBlock(signal) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const boxes = {};
  const select = (title, name, options, onchange) => {
    boxes[name] = h("select", { onchange });
    fill(name, options);
    return h("label", { class: "field" }, h("span", {}, title), boxes[name]);
  };

  function fill(name, options) {
    const value = inviteOptions()[name] ?? options[0][0];
    boxes[name].replaceChildren(...choicesOf(options, value).map(([each, words]) => h("option", { value: each, selected: each === value }, words)));
  }

  async function show(request) {
    problem.hidden = true;
    for (const field of Object.keys(OF_HOST)) boxes[field].disabled = true; // an older answer would undo a choice
    let rows = {};
    try {
      rows = keepHost(await request);
    } catch (error) {
      if (signal.aborted) return;
      put(problem, error.message);
      problem.hidden = false;
    }
    for (const [field, name] of Object.entries(OF_HOST)) {
      const fixed = rows[name]?.in_environment === true;
      fill(field, field === "ttl" ? SPANS : SCOPES);
      boxes[field].disabled = fixed;
      boxes[field].title = fixed ? t("{name} is set in the environment of the servers", { name: text(rows[name].variable) }) : "";
    }
  }

  const change = (field) => () => show(agent("PATCH", "/host", { [OF_HOST[field]]: boxes[field].value }, signal));
  const keep = () => keepInviteOptions({ ...inviteOptions(), mode: boxes.mode.value });
  const block = h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("New devices"))),
    h("div", { class: "settings" }, problem, select(t("May do"), "scope", SCOPES, change("scope")), select(t("Paired for"), "ttl", SPANS, change("ttl")),
      h("p", { class: "sub" }, t("Stored on this host. New pairing codes start with these.")),
      select(t("Routes"), "mode", MODES, keep)));
  show(agent("GET", "/host", undefined, signal));
  return block;
}

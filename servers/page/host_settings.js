// Settings of the host: public address, names for the app, token of metrics, API key. The commands that remain are named.

import { announce, copyButton, h, put } from "./dom.js";
import { text } from "./format.js";
import { t } from "./i18n.js";
import { agent, rotateKey } from "./net.js";
import { ask } from "./view.js";

const MAX_TEXT = 256; // characters, as in the API
const TOKEN_BYTES = 24;
const RESTART = "svc down && svc up";
// Secrets that open this page and the model's account: only a person at the host sets them.
const ROWS = [
  [t("Key of the model's server"), "svc model --ask-key"],
  [t("Password of this dashboard"), "SVC_DASHBOARD_PASSWORD="],
];
const BRANDS = [["hermes", t("Hermes-Relay app for Android")], ["svc", t("Programs of this project")]];

/** Build the block; `signal` ends its requests. */
export function hostBlock(signal) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const saved = h("div", { role: "status" });
  const url = h("input", { type: "url", placeholder: "https://home.example/relay", maxlength: MAX_TEXT, autocomplete: "off", spellcheck: "false" });
  const brand = h("select", {}, BRANDS.map(([value, title]) => h("option", { value }, title)));
  const token = h("span", { class: "sub" });
  const newToken = h("button", { type: "button", onclick: makeToken }, t("New token"));
  const noToken = h("button", { type: "button", onclick: () => change({ metrics_token: "" }) }, t("Remove the token"));
  const save = h("button", { type: "submit", class: "main" }, t("Save"));
  const rotate = h("button", { type: "button", class: "danger", onclick: makeKey }, t("New API key…"));
  const form = h("form", { class: "settings", autocomplete: "off" }, problem,
    h("label", { class: "field" }, h("span", {}, t("Public address, offered in each pairing code")), url),
    h("label", { class: "field" }, h("span", {}, t("Names that the app expects")), brand),
    h("div", { class: "actions" }, save),
    h("div", { class: "field" }, h("span", {}, t("Token for programs that read /metrics from elsewhere")), token,
      h("div", { class: "actions" }, newToken, noToken)),
    h("div", { class: "field" }, h("span", {}, t("API key of this host")),
      h("span", { class: "sub" }, t("Phones whose code held the key are refused once there is a new one, and so are programs that use it.")),
      h("div", { class: "actions" }, rotate)), saved);
  const controls = { public_url: [url], brand: [brand], metrics_token: [newToken, noToken] };
  let known = {};

  function show({ settings }) {
    for (const each of Array.isArray(settings) ? settings : []) {
      known[each.name] = each;
      for (const control of controls[each.name] ?? []) {
        control.disabled = each.in_environment === true;
        control.title = each.in_environment ? t("{name} is set in the environment of the servers", { name: text(each.variable) }) : "";
      }
    }
    url.value = known.public_url?.value ?? "";
    brand.value = known.brand?.value || "svc";
    put(token, known.metrics_token?.is_set ? t("A token is set.") : t("No token: only programs of this host read them."));
    noToken.hidden = !known.metrics_token?.is_set;
  }

  /** Run a request; return its answer, or null after an error, which is shown. */
  async function attempt(request) {
    problem.hidden = true;
    for (const each of form.elements) each.inert = true;
    try {
      return await request();
    } catch (error) {
      if (!signal.aborted) {
        put(problem, error.message);
        problem.hidden = false;
      }
      return null;
    } finally {
      for (const each of form.elements) each.inert = false;
    }
  }

  async function change(values, ...more) {
    const answer = await attempt(() => agent("PATCH", "/host", values, signal));
    if (!answer) return;
    show(answer);
    const words = t("Saved. It counts from the next start of the servers on:");
    saved.replaceChildren(h("p", {}, words), command(RESTART), ...more);
    announce(words);
  }

  function makeToken() {
    const made = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)))).replaceAll("+", "-").replaceAll("/", "_");
    return change({ metrics_token: made }, h("p", {}, t("The token is shown this once:")), command(made, t("Copy the token")));
  }

  async function makeKey() {
    const sure = await ask(t("Make a new API key?"), t("The old one is refused at once. Phones and programs that use it need the new one: pair the phones again. The chat of this page goes on."), t("Make a new key"));
    if (!sure) return;
    const answer = await attempt(() => rotateKey(signal));
    if (!answer) return;
    const words = t("There is a new API key; the old one is refused.");
    saved.replaceChildren(h("p", {}, words));
    announce(words);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = { public_url: url.value.trim(), brand: brand.value };
    const changed = Object.entries(values).filter(([name, value]) => known[name] && !known[name].in_environment && value !== (known[name].value || (name === "brand" ? "svc" : "")));
    if (changed.length) change(Object.fromEntries(changed));
  });
  attempt(() => agent("GET", "/host", undefined, signal)).then((answer) => answer && show(answer));
  return h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("This host"))), form,
    h("div", { class: "settings commands" }, h("p", { class: "sub" }, t("Set on the host alone, by a command or by a variable in ~/.svc/.env:")),
      h("ul", { class: "news" }, ROWS.map(([title, each]) => h("li", {}, title, command(each))))));
}

function command(words, label = t("Copy {name}", { name: words })) {
  return h("div", { class: "host-row" }, h("code", {}, words), copyButton(words, "", { "aria-label": label, title: t("Copy") }));
}

// The pairing dialog: a pairing code as QR, as text and as URL, until it expires.

import { announce, copyButton, h, icon, s } from "./dom.js";
import { countdown, now, plain, seconds, text } from "./format.js";
import { granted } from "./grants.js";
import { t } from "./i18n.js";
import { choicesOf, inviteOptions, keepInviteOptions, MODES, SCOPES, SPANS } from "./invite_options.js";
import { qr, relay } from "./net.js";
import { ask, badge } from "./view.js";

const SOON = 60; // s
const MARGIN = 4; // modules around a QR, ISO/IEC 18004
const ROLES = [["", t("Nearest first")], ["lan", t("Local network")], ["mesh", t("Mesh VPN")], ["public", t("Public address")]];
const WITHHELD = {
  phone: ["terminal", "tui"],
  chat: ["terminal", "tui", "bridge", "voice:config", "voice:stt", "voice:tts", "voice:realtime"],
};
const SECRET_NOTE = t("A public route makes the relay require its local secret: without a password (SVC_DASHBOARD_PASSWORD) this dashboard then loses its access to the relay.");
const FIELDS = ["scope", "ttl", "mode", "prefer", "public_url", "host", "port", "tls"];

/** Show the dialog and create a code, which starts with `options`. `onClose` is called at its end; pass paired devices to `seen(sessions)`. */
export function openPairing(options, onClose) {
  const fields = formOf(options);
  const stage = h("div", { class: "stage" });
  const again = h("button", { type: "button" }, icon("refresh"), t("New code"));
  const done = h("button", { class: "main", type: "button", onclick: () => dialog.close() }, t("Done"));
  const dialog = h(
    "dialog",
    { class: "pairing", "aria-labelledby": "pair-title" },
    h("h2", { id: "pair-title", tabindex: "-1", autofocus: true }, t("Pair a device")),
    h("p", { class: "lead" }, t("Scan the QR with the phone's app, or type the code in. It works once.")),
    stage,
    fields.form,
    h("div", { class: "foot" }, again, done),
  );
  let invite = null;
  let timer = 0;
  let turn = 0;

  async function mint() {
    const wish = fields.wish();
    if (looksPublic(wish.host) && !await ask(t("Make an invite for a public address?"), t("{host} looks like one behind a proxy. Invites for it hand out the key of the API server on that route.", { host: plain(wish.host) }), t("Make it"))) {
      if (!stage.childElementCount) stage.replaceChildren(h("p", { class: "waiting" }, t("No code was made.")));
      return;
    }
    if (!dialog.isConnected) return;
    const { scope, ttl } = inviteOptions(); // those of the host, whatever this code has
    keepInviteOptions({ ...fields.values(), scope, ttl });
    const mine = (turn += 1);
    invite = null;
    clearInterval(timer);
    stage.replaceChildren(h("p", { class: "waiting", role: "status" }, t("Making a code…")));
    again.disabled = true;
    try {
      const made = await relay("POST", "/pairing", wish);
      const rows = await qr(made.qr_payload);
      if (mine !== turn) return;
      invite = { ...made, at: now() };
      stage.replaceChildren(...inviteView(made, rows, (update) => { timer = setInterval(update, 1000); }));
      announce(spelled(made.code));
    } catch (error) {
      if (mine === turn) stage.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
    if (mine === turn) again.disabled = false;
  }

  again.addEventListener("click", mint);
  fields.form.addEventListener("change", mint);
  fields.form.addEventListener("submit", (event) => { event.preventDefault(); mint(); });
  dialog.addEventListener("close", () => {
    clearInterval(timer);
    turn += 1;
    dialog.remove();
    onClose();
  });
  document.body.append(dialog);
  dialog.showModal();
  mint();
  return {
    close: () => dialog.close(),
    seen: (sessions) => {
      const fresh = invite && sessions.find((each) => (seconds(each.created_at) ?? 0) >= invite.at - 1);
      if (!fresh) return;
      clearInterval(timer);
      invite = null;
      const said = t("{name} is paired", { name: text(fresh.device_name) });
      stage.replaceChildren(h("div", { class: "success", role: "status" }, icon("check"), h("strong", {}, said), h("span", {}, granted(fresh.grants))));
      announce(said);
    },
  };
}

// --- invite

function inviteView(invite, rows, every) {
  const left = h("span", { class: "left" });
  const code = h("output", { class: "code", "aria-label": spelled(invite.code) }, invite.code);
  const update = () => {
    const rest = (seconds(invite.expires_at) ?? 0) - now();
    left.textContent = rest > 0 ? t("Works for {time}", { time: countdown(rest) }) : t("Expired: make a new one");
    left.classList.toggle("soon", rest <= SOON);
    code.classList.toggle("over", rest <= 0);
  };
  update();
  every(update);
  const endpoints = Array.isArray(invite.endpoints) ? invite.endpoints : [];
  return [
    h("div", { class: "qr" }, drawing(rows)),
    h("div", { class: "facts" },
      code,
      left,
      h("label", { class: "field" }, h("span", {}, t("Invite URL")),
        h("span", { class: "joined" }, h("input", { readonly: true, value: text(invite.pairing_url), spellcheck: "false" }), copyButton(text(invite.pairing_url), t("Copy")))),
      h("p", { class: "sub" }, t("It contains credentials: show it only to the device.")),
      endpoints.length ? h("ul", { class: "endpoints", "aria-label": t("Routes in this invite") }, endpoints.map((each) =>
        h("li", {}, badge("plain", roleOf(each?.role)), " ", h("code", {}, `${text(each?.api?.host)}:${text(each?.api?.port)}`)))) : null),
  ];
}

/** Return a code as letters for a screen reader. */
function spelled(code) {
  return t("Code {code}", { code: code.split("").join(" ") });
}

function roleOf(role) {
  return ROLES.find(([name]) => name && name === role)?.[1] ?? text(role);
}

/** Draw a QR, always dark on light, so that every camera reads it. */
function drawing(rows) {
  const side = rows.length + 2 * MARGIN;
  const path = rows.flatMap((line, y) => [...line.matchAll(/1+/g)].map((run) => `M${run.index + MARGIN} ${y + MARGIN}h${run[0].length}v1h-${run[0].length}z`)).join("");
  return s("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": t("QR code of the invite"), "shape-rendering": "crispEdges" },
    s("rect", { width: side, height: side, fill: "#fff" }), s("path", { d: path, fill: "#000" }));
}

// --- options

function formOf(values) {
  const select = (name, usual) => {
    const options = choicesOf(usual, values[name]);
    const box = h("select", { name }, options.map(([value, title]) => h("option", { value }, title)));
    box.value = options.some(([value]) => value === values[name]) ? values[name] : options[0][0];
    return box;
  };
  const input = (name, props) => h("input", { name, value: values[name] ?? "", autocomplete: "off", spellcheck: "false", ...props });
  const field = (title, inner) => h("label", { class: "field" }, h("span", {}, title), inner);
  const mode = select("mode", MODES);
  const address = field(t("Public address"), input("public_url", { type: "url", placeholder: "https://relay.example" }));
  const note = h("p", { class: "sub" }, SECRET_NOTE);
  const show = () => {
    address.hidden = !["auto", "public"].includes(mode.value);
    note.hidden = address.hidden || !address.querySelector("input").value;
  };
  mode.addEventListener("input", show);
  address.addEventListener("input", show);
  show();
  const advanced = h("details", {}, h("summary", {}, t("Advanced: where the API server is")),
    h("div", { class: "fields" },
      field(t("Host"), input("host", { placeholder: t("as configured") })),
      field(t("Port"), input("port", { inputmode: "numeric", pattern: "[0-9]*", placeholder: t("as configured") })),
      field("HTTPS", select("tls", [["", t("As configured")], ["yes", t("Yes")], ["no", t("No")]]))));
  advanced.open = Boolean(values.host || values.port || values.tls);
  const form = h("form", { class: "wishes" }, h("div", { class: "fields" },
    field(t("May do"), select("scope", SCOPES)), field(t("Paired for"), select("ttl", SPANS)), field(t("Routes"), mode), field(t("Preferred"), select("prefer", ROLES)), address), note, advanced);
  const values_ = () => Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value.trim()]));
  return {
    form,
    values: values_,
    wish: () => {
      const given = values_();
      const wish = { mode: given.mode };
      if (given.scope) wish.grants = Object.fromEntries(WITHHELD[given.scope].map((channel) => [channel, false]));
      else if (inviteOptions().scope) wish.grants = {}; // everything, although the host's default is less
      if (given.ttl) wish.ttl_seconds = Number(given.ttl);
      if (given.prefer) wish.prefer = given.prefer;
      if (given.public_url && !address.hidden) wish.public_url = given.public_url;
      if (given.host) wish.host = given.host;
      if (/^[0-9]{1,5}$/.test(given.port)) wish.port = Number(given.port);
      if (given.tls) wish.tls = given.tls === "yes";
      return wish;
    },
  };
}

/** Report whether a host may be a public name. */
function looksPublic(host) {
  if (!host || /^[0-9.]+$/.test(host) || host.includes(":") || !host.includes(".")) return false;
  return !/\.(local|localhost|lan|internal|home\.arpa|ts\.net)$/i.test(host);
}

// Clients that are signed in to the dashboard with its password: browsers and phones. Each can be signed out.

import { announce, h, put, ticking } from "./dom.js";
import { ago, day, moment, plain, text } from "./format.js";
import { t } from "./i18n.js";
import { signIns, signOut } from "./net.js";
import { ask, badge, row, table } from "./view.js";

const COLUMNS = [t("Client"), t("Address"), t("Last used"), t("Signed in"), ""];
const BROWSERS = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"], ["okhttp/", t("Phone's app")]];

/** Build the block of the signed-in clients: `rows(sessions, refresh)` returns the block, or null without any. */
export function signInBlock() {
  const list = table(t("Signed-in clients"), COLUMNS);
  const element = h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Signed-in clients"))), list.element);
  return (sessions, refresh) => {
    if (!sessions.length) return null;
    list.body.replaceChildren(...sessions.map((session) => clientRow(session, refresh)));
    return element;
  };
}

function clientRow(session, refresh) {
  const agent = text(session.agent);
  const name = BROWSERS.find(([mark]) => agent.includes(mark))?.[1] ?? t("Client");
  const label = session.current ? t("Sign out") : t("End");
  const end = h("button", { class: session.current ? "quiet" : "danger", type: "button", "aria-label": `${label}: ${name}, ${plain(text(session.address))}` }, label);
  end.addEventListener("click", () => (session.current ? leave(end) : revoke(end, session, name, refresh)));
  return row(COLUMNS, [
    h("div", {}, h("strong", { class: "name" }, name), session.current === true && badge("plain", t("This browser")), h("div", { class: "sub" }, plain(agent))),
    h("div", {}, text(session.address)),
    ticking(h("time"), (each) => put(each, ago(session.used_at), moment(session.used_at) ?? "")),
    h("time", { title: moment(session.created_at) }, day(session.created_at)),
    [h("div", { class: "actions" }, end), { class: "end" }],
  ]);
}

async function leave(button) {
  button.disabled = true;
  try {
    await signOut();
    location.assign("login");
  } catch (error) {
    ask(t("This browser was not signed out"), error.message);
    button.disabled = false;
  }
}

async function revoke(button, session, name, refresh) {
  if (!await ask(t("End the sign-in of {name}?", { name }), t("Its connections from {address} are closed at once, and it needs the password again.", { address: plain(text(session.address)) }), t("End"))) return;
  button.disabled = true;
  await signIns("DELETE", session.id).then(() => announce(t("{name} is signed out", { name })), (error) => ask(t("{name} was not signed out", { name }), error.message));
  refresh();
}

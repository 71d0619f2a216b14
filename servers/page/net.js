// Requests to the dashboard's own server, the only one that this page uses, and the polling of the open tab.

import { heardClock } from "./format.js";
import { t } from "./i18n.js";

const RELAY = "api/plugins/svc-relay"; // relative: a proxy may serve the page under a path of its own
const CHAT_API = "api/agent";
const PHONE = "api/phone";
const SLOW = 40_000; // ms for a command to a phone, whose user may be asked
const CALL_PATIENCE = 15_000; // ms; the server answers every request within five seconds

/** Error of a failed request: a message for people, a code for programs, empty if there is none. */
export class CallFailed extends Error {
  constructor(message, status, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Send a request to the relay's routes: `relay("GET", "/sessions")`. */
export const relay = (method, path, body, signal) => call(method, RELAY + path, body, signal);

/** Return the address of a registered picture. */
export const pictureOf = (token) => `${RELAY}/media/${encodeURIComponent(token)}`;

/** Return the address of a picture that is stored with a chat. */
export const chatPictureOf = (chat, token) => `${CHAT_API}/sessions/${chat}/pictures/${encodeURIComponent(token)}`;

/** Send a request to the chat's routes. */
export const agent = (method, path, body, signal) => call(method, CHAT_API + path, body, signal);

/** Send a command to a paired phone. */
export const command = (device, name, body, signal) => call("POST", `${RELAY}/phones/${encodeURIComponent(device)}/${name}`, body, signal, SLOW);

/** Ask a model's server for its models, or test one. */
export const probe = (body, signal) => call("POST", `${CHAT_API}/model/probe`, body, signal, 2 * SLOW);

/** Return a text as sound: `{ data_url }`. */
export const speak = (text, signal) => call("POST", "api/audio/speak", { text }, signal, 3 * SLOW);

/** Send a request to the reference phone. */
export const phone = (method, path, body, signal) => call(method, PHONE + path, body, signal);

/** Get the measurements of the servers, now and in the last hour. */
export const vitals = (signal) => call("GET", "api/vitals", undefined, signal);

/** Replace the API key of this host by a new one. */
export const rotateKey = (signal) => agent("POST", "/key/rotate", {}, signal);

/** Return the results of the checks of `svc doctor`. */
export const health = () => call("GET", "api/health");

/** List the signed-in clients, or end the sign-in of one: `signIns("DELETE", id)`. */
export const signIns = (method, id, signal) => call(method, `api/auth/sessions${id ? `/${encodeURIComponent(id)}` : ""}`, undefined, signal);

/** End the sign-in of this browser. */
export const signOut = () => call("POST", "auth/logout", {});

/** Get the rows of a text's QR code. */
export async function qr(text) {
  return (await call("POST", "api/qr", text)).rows;
}

/** Start a turn and return its event stream. */
export async function openTurn(session, body, signal) {
  const answer = await send("POST", `${CHAT_API}/sessions/${encodeURIComponent(session)}/chat/stream`, body, signal);
  return answer.body;
}

async function call(method, path, body, signal, patience = CALL_PATIENCE) {
  const late = AbortSignal.timeout(patience);
  const answer = await send(method, path, body, signal ? AbortSignal.any([signal, late]) : late);
  return answer.status === 204 ? null : answer.json();
}

async function send(method, path, body, signal) {
  const init = { method, signal, cache: "no-store", redirect: "error", headers: {} };
  if (body !== undefined) {
    init.body = typeof body === "string" ? body : JSON.stringify(body);
    init.headers["Content-Type"] = typeof body === "string" ? "text/plain" : "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw error;
    throw new CallFailed(t("The dashboard does not answer. Is it still running?"), 0);
  }
  heardClock(answer.headers.get("date"));
  if (answer.ok) return answer;
  let refusal = {};
  try {
    refusal = await answer.json();
  } catch { /* the status is reported below */ }
  const code = codeOf(refusal);
  if (code === "password_needed") location.assign(`login?next=${encodeURIComponent(location.pathname + location.hash)}`);
  throw new CallFailed(said(refusal.detail) ?? t("The dashboard answered {status}.", { status: answer.status }), answer.status, code);
}

/** Return the code of a refusal: that of the server behind the dashboard, if that server refused. */
function codeOf({ detail, code }) {
  const found = detail?.error?.code ?? detail?.code ?? code;
  return typeof found === "string" ? found : "";
}

/** Return the text of an error, in any of the formats in use. */
function said(detail) {
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((each) => `${(each.loc ?? []).join(".")}: ${each.msg}`).join("; ");
  const error = detail?.error?.message ?? detail?.error ?? detail?.message;
  if (typeof error === "string") return error;
  return detail ? JSON.stringify(detail) : null;
}

/**
 * Polls while the tab is open and the page is visible: `load(signal)` every `every` seconds, then `show(data)` or
 * `fail(error)` with the result. Without auto-refresh it loads once, and at each call of `now`.
 */
export class Poller {
  #every;
  #load;
  #show;
  #fail;
  #timer = 0;
  #stopped = false;
  #busy = null;
  #due = 0;
  #auto;

  constructor(every, auto, load, show, fail) {
    this.#every = every * 1000;
    this.#auto = auto;
    this.#load = load;
    this.#show = show;
    this.#fail = fail;
    this.onVisible = () => this.#plan();
    document.addEventListener("visibilitychange", this.onVisible);
    this.now();
  }

  /** Load now; a request under way is aborted. */
  async now() {
    this.#busy?.abort();
    const busy = (this.#busy = new AbortController());
    clearTimeout(this.#timer);
    try {
      const data = await this.#load(busy.signal);
      if (busy === this.#busy && !this.#stopped) this.#show(data);
    } catch (error) {
      if (busy === this.#busy && !this.#stopped) this.#fail(error);
    }
    if (busy !== this.#busy) return;
    this.#busy = null;
    this.#due = Date.now() + this.#every;
    this.#plan();
  }

  /** Turn auto-refresh on or off. */
  set auto(on) {
    this.#auto = on;
    this.#plan();
  }

  stop() {
    this.#stopped = true;
    this.#busy?.abort();
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  #plan() {
    clearTimeout(this.#timer);
    if (this.#stopped || this.#busy || !this.#auto || document.hidden) return;
    this.#timer = setTimeout(() => this.now(), Math.max(0, this.#due - Date.now()));
  }
}

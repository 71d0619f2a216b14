// Sentences for commands to a phone: `deed(record)`. Apps have short names here; the details show the package names.

import { plain, text } from "./format.js";
import { AGENT } from "./grants.js";
import { t } from "./i18n.js";

const EMPTY = new Set(["com", "org", "net", "io", "de", "app", "apps", "android", "mobile", "client", "main", "sideload"]);
const SHORT = 60; // characters of a parameter in a sentence

// Past tense and infinitive by path; `{x}` stands for a readable parameter.
const DEEDS = {
  __proto__: null,
  "/ping": [t("Checked the connection"), t("check the connection")],
  "/setup": [t("Set up the phone"), t("set up the phone")],
  "/current_app": [t("Checked which app is open"), t("check which app is open")],
  "/return_to_svc": [t("Went back to the client"), t("go back to the client")],
  "/return_to_hermes": [t("Went back to the client"), t("go back to the client")],
  "/screen": [t("Read the screen"), t("read the screen")],
  "/screen_hash": [t("Checked whether the screen has changed"), t("check whether the screen has changed")],
  "/diff_screen": [t("Compared the screen"), t("compare the screen")],
  "/find_nodes": [t("Searched the screen"), t("search the screen")],
  "/describe_node": [t("Read a part of the screen"), t("read a part of the screen")],
  "/screenshot": [t("Took a picture of the screen"), t("take a picture of the screen")],
  "/get_apps": [t("Listed the apps"), t("list the apps")],
  "/apps": [t("Listed the apps"), t("list the apps")],
  "/tap": [t("Tapped"), t("tap")],
  "/tap_text": [t("Tapped {text}"), t("tap {text}")],
  "/long_press": [t("Pressed and held"), t("press and hold")],
  "/drag": [t("Dragged"), t("drag")],
  "/type": [t("Typed {text}"), t("type {text}")],
  "/swipe": [t("Swiped"), t("swipe")],
  "/scroll": [t("Scrolled"), t("scroll")],
  "/press_key": [t("Pressed {key}"), t("press {key}")],
  "/wait": [t("Waited"), t("wait")],
  "/open_app": [t("Opened {app}"), t("open {app}")],
  "GET /clipboard": [t("Read the clipboard"), t("read the clipboard")],
  "/clipboard": [t("Put text on the clipboard"), t("put text on the clipboard")],
  "/media": [t("Controlled the player"), t("control the player")],
  "/send_intent": [t("Started an action"), t("start an action")],
  "/broadcast": [t("Sent a broadcast"), t("send a broadcast")],
  "/events": [t("Read what has happened on the screen"), t("read what has happened on the screen")],
  "/events/stream": [t("Changed the recording of events"), t("change the recording of events")],
  "/location": [t("Read the location"), t("read the location")],
  "/search_contacts": [t("Searched the contacts"), t("search the contacts")],
  "/call": [t("Called {number}"), t("call {number}")],
  "/send_sms": [t("Sent a message to {to}"), t("send a message to {to}")],
  "/send_mms": [t("Sent a picture message to {to}"), t("send a picture message to {to}")],
  "/share_media": [t("Shared a file"), t("share a file")],
};
// Sentences of commands that were not executed, by decision; `{act}` stands for the infinitive with device and caller.
const NOT_DONE = {
  __proto__: null,
  blocked: t("Was not allowed to {act}"),
  timeout: t("Tried to {act}; the phone did not answer"),
  error: t("Could not {act}"),
  pending: t("Is about to {act}"),
};

/** Describe a command: `Opened Mail on Pixel 8, asked by the agent`. */
export function deed(record) {
  const params = record.params && typeof record.params === "object" ? record.params : {};
  const path = plain(text(record.path));
  const known = DEEDS[`${record.method} ${record.path}`] ?? DEEDS[record.path] ?? [t("Did {path}", { path }), t("do {path}", { path })];
  const frame = NOT_DONE[record.decision];
  let act = known[frame ? 1 : 0].replace(/\{(\w+)\}/g, (_, name) => SAID[name](params));
  if (record.device_name) act = t("{act} on {device}", { act, device: plain(text(record.device_name)) });
  if (record.asked_by === AGENT) act = t("{act}, asked by the agent", { act });
  else if (record.asked_by) act = t("{act}, asked by {name}", { act, name: plain(text(record.asked_by)) });
  return frame ? frame.replace("{act}", () => act) : act;
}

/** Return a readable app name: `com.example.mail` is Mail. */
export function appName(name) {
  const parts = String(name).split(".").filter((each) => each && !EMPTY.has(each.toLowerCase()));
  const last = parts.at(-1) ?? String(name);
  const said = last.length > 3 ? last : parts[0] ?? last;
  return plain(said.charAt(0).toUpperCase() + said.slice(1));
}

const SAID = {
  app: ({ package: name }) => (name ? appName(name) : t("an app")),
  text: ({ text: words }) => quoted(words, t("text")),
  key: ({ key }) => quoted(key, t("a key")),
  number: ({ number }) => plain(brief(number) ?? t("a number")),
  to: ({ to }) => plain(brief(to) ?? t("a contact")),
};

/** Quote a text. The relay replaces private text by its length in brackets, which is not quoted. */
function quoted(value, otherwise) {
  const words = brief(value);
  if (words === null) return otherwise;
  return /^\[.+\]$/.test(words) ? t("text {length}", { length: words }) : t("“{words}”", { words: plain(words) });
}

function brief(value) {
  const said = text(value);
  if (typeof value !== "string" && typeof value !== "number") return null;
  return said.length > SHORT ? `${said.slice(0, SHORT - 1)}…` : said;
}

// What was done with a phone, as a sentence: `deed(record)`. What it says of an app is a short name; the details have all.

import { plain, text } from "./format.js";

const EMPTY = new Set(["com", "org", "net", "io", "de", "app", "apps", "android", "mobile", "client", "main", "sideload"]);
const SHORT = 60; // characters of a text that are said

// By path: what was done, and what was to be done; `{x}` stands for a parameter as people say it.
const DEEDS = {
  __proto__: null,
  "/ping": ["Asked whether it is there", "ask whether it is there"],
  "/setup": ["Greeted it", "greet it"],
  "/current_app": ["Looked which app is open", "look which app is open"],
  "/return_to_svc": ["Went back to the client", "go back to the client"],
  "/return_to_hermes": ["Went back to the client", "go back to the client"],
  "/screen": ["Read the screen", "read the screen"],
  "/screen_hash": ["Looked whether the screen has changed", "look whether the screen has changed"],
  "/diff_screen": ["Looked what has changed on the screen", "look what has changed on the screen"],
  "/find_nodes": ["Searched the screen", "search the screen"],
  "/describe_node": ["Looked at a part of the screen", "look at a part of the screen"],
  "/screenshot": ["Took a picture of the screen", "take a picture of the screen"],
  "/get_apps": ["Listed the apps", "list the apps"],
  "/apps": ["Listed the apps", "list the apps"],
  "/tap": ["Tapped", "tap"],
  "/tap_text": ["Tapped {text}", "tap {text}"],
  "/long_press": ["Pressed and held", "press and hold"],
  "/drag": ["Dragged", "drag"],
  "/type": ["Typed {text}", "type {text}"],
  "/swipe": ["Swiped", "swipe"],
  "/scroll": ["Scrolled", "scroll"],
  "/press_key": ["Pressed {key}", "press {key}"],
  "/wait": ["Waited", "wait"],
  "/open_app": ["Opened {app}", "open {app}"],
  "GET /clipboard": ["Read the clipboard", "read the clipboard"],
  "/clipboard": ["Put text on the clipboard", "put text on the clipboard"],
  "/media": ["Controlled the player", "control the player"],
  "/send_intent": ["Started an action", "start an action"],
  "/broadcast": ["Sent a broadcast", "send a broadcast"],
  "/events": ["Read what has happened on the screen", "read what has happened on the screen"],
  "/events/stream": ["Changed the recording of events", "change the recording of events"],
  "/location": ["Looked where it is", "look where it is"],
  "/search_contacts": ["Searched the contacts", "search the contacts"],
  "/call": ["Called {number}", "call {number}"],
  "/send_sms": ["Sent a message to {to}", "send a message to {to}"],
  "/send_mms": ["Sent a picture message to {to}", "send a picture message to {to}"],
  "/share_media": ["Shared a file", "share a file"],
};
const NOT_DONE = { // by decision: what stands before what was to be done, and behind all
  __proto__: null,
  blocked: ["Was not allowed to ", ""],
  timeout: ["Tried to ", "; the phone did not answer"],
  error: ["Could not ", ""],
  pending: ["Is about to ", ""],
};
export const AGENT = "Agent on this host"; // as which the agent pairs itself

/** `Opened Mail on Pixel 8, asked by the agent`. */
export function deed(record) {
  const params = record.params && typeof record.params === "object" ? record.params : {};
  const known = DEEDS[`${record.method} ${record.path}`] ?? DEEDS[record.path] ?? [`Did ${plain(text(record.path))}`, `do ${plain(text(record.path))}`];
  const [before, behind] = NOT_DONE[record.decision] ?? [null, ""];
  const words = known[before === null ? 0 : 1].replace(/\{(\w+)\}/g, (_, name) => SAID[name](params));
  const where = record.device_name ? ` on ${plain(text(record.device_name))}` : "";
  const who = record.asked_by ? `, asked by ${record.asked_by === AGENT ? "the agent" : plain(text(record.asked_by))}` : "";
  return `${before ?? ""}${words}${where}${who}${behind}`;
}

/** `com.example.mail` is Mail. The whole name is what counts; this one is for reading. */
export function appName(name) {
  const parts = String(name).split(".").filter((each) => each && !EMPTY.has(each.toLowerCase()));
  const last = parts.at(-1) ?? String(name);
  const said = last.length > 3 ? last : parts[0] ?? last;
  return plain(said.charAt(0).toUpperCase() + said.slice(1));
}

const SAID = {
  app: ({ package: name }) => (name ? appName(name) : "an app"),
  text: ({ text: words }) => quoted(words, "text"),
  key: ({ key }) => quoted(key, "a key"),
  number: ({ number }) => plain(brief(number) ?? "somebody"),
  to: ({ to }) => plain(brief(to) ?? "somebody"),
};

/** In quotation marks; where the relay keeps a text to itself it says how long it is, in brackets. */
function quoted(value, otherwise) {
  const words = brief(value);
  if (words === null) return otherwise;
  return /^\[.+\]$/.test(words) ? `text ${words}` : `“${plain(words)}”`;
}

function brief(value) {
  const said = text(value);
  if (typeof value !== "string" && typeof value !== "number") return null;
  return said.length > SHORT ? `${said.slice(0, SHORT - 1)}…` : said;
}

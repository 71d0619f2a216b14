// Sentences for commands to a phone: `deed(record)`. Apps have short names here; the details show the package names.

import { plain, text } from "./format.js";

const EMPTY = new Set(["com", "org", "net", "io", "de", "app", "apps", "android", "mobile", "client", "main", "sideload"]);
const SHORT = 60; // characters of a parameter in a sentence

// Past tense and infinitive by path; `{x}` stands for a readable parameter.
const DEEDS = {
  __proto__: null,
  "/ping": ["Checked the connection", "check the connection"],
  "/setup": ["Set up the phone", "set up the phone"],
  "/current_app": ["Checked which app is open", "check which app is open"],
  "/return_to_svc": ["Went back to the client", "go back to the client"],
  "/return_to_hermes": ["Went back to the client", "go back to the client"],
  "/screen": ["Read the screen", "read the screen"],
  "/screen_hash": ["Checked whether the screen has changed", "check whether the screen has changed"],
  "/diff_screen": ["Compared the screen", "compare the screen"],
  "/find_nodes": ["Searched the screen", "search the screen"],
  "/describe_node": ["Read a part of the screen", "read a part of the screen"],
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
  "/location": ["Read the location", "read the location"],
  "/search_contacts": ["Searched the contacts", "search the contacts"],
  "/call": ["Called {number}", "call {number}"],
  "/send_sms": ["Sent a message to {to}", "send a message to {to}"],
  "/send_mms": ["Sent a picture message to {to}", "send a picture message to {to}"],
  "/share_media": ["Shared a file", "share a file"],
};
const NOT_DONE = { // by decision: text before the infinitive, and at the end
  __proto__: null,
  blocked: ["Was not allowed to ", ""],
  timeout: ["Tried to ", "; the phone did not answer"],
  error: ["Could not ", ""],
  pending: ["Is about to ", ""],
};
export const AGENT = "Agent on this host"; // device name of the agent's own session

/** Describe a command: `Opened Mail on Pixel 8, asked by the agent`. */
export function deed(record) {
  const params = record.params && typeof record.params === "object" ? record.params : {};
  const known = DEEDS[`${record.method} ${record.path}`] ?? DEEDS[record.path] ?? [`Did ${plain(text(record.path))}`, `do ${plain(text(record.path))}`];
  const [before, behind] = NOT_DONE[record.decision] ?? [null, ""];
  const words = known[before === null ? 0 : 1].replace(/\{(\w+)\}/g, (_, name) => SAID[name](params));
  const where = record.device_name ? ` on ${plain(text(record.device_name))}` : "";
  const who = record.asked_by ? `, asked by ${record.asked_by === AGENT ? "the agent" : plain(text(record.asked_by))}` : "";
  return `${before ?? ""}${words}${where}${who}${behind}`;
}

/** Return a readable app name: `com.example.mail` is Mail. */
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
  number: ({ number }) => plain(brief(number) ?? "a number"),
  to: ({ to }) => plain(brief(to) ?? "a contact"),
};

/** Quote a text. The relay replaces private text by its length in brackets, which is not quoted. */
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

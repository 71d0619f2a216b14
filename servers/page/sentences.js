// Sentences for commands to a phone: `deed(record)`. Apps have short names here; the details show the package names.

import { SENTENCES } from "./command_sentences.js"; // past tense and infinitive by path; `{x}` stands for a readable parameter
import { plain, text } from "./format.js";
import { AGENT } from "./grants.js";
import { t } from "./i18n.js";

const EMPTY = new Set(["com", "org", "net", "io", "de", "app", "apps", "android", "mobile", "client", "main", "sideload"]);
const SHORT = 60; // characters of a parameter in a sentence

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
  const known = SENTENCES[`${record.method} ${record.path}`] ?? SENTENCES[record.path] ?? [t("Did {path}", { path }), t("do {path}", { path })];
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

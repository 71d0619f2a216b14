// Grants of a device and their expiry as text.

import { expiry, now, seconds, text } from "./format.js";
import { t } from "./i18n.js";

/** Device name of the agent's own session. */
export const AGENT = "Agent on this host";
const SOON = 3 * 86400; // s before an expiry in which it is highlighted
const ORDER = ["chat", "bridge", "terminal", "tui"];
const CALLED = { __proto__: null, chat: t("chat"), bridge: t("phone control"), terminal: t("terminal"), tui: t("desktop") }; // displayed names of channels
const CHANNELS = 8; // number of message channels: grants for all of them are "everything"

/** Format grants: `Everything, 4 weeks; phone control 6 days`. Channels are grouped by expiry, largest first. */
export function granted(grants) {
  const pairs = grantsOf(grants).filter(([, until]) => urgency(until) !== "bad");
  if (!pairs.length) return t("Nothing");
  const groups = Map.groupBy(pairs, ([, until]) => (until === null ? t("for good") : expiry(until)));
  const sorted = [...groups].sort(([, one], [, other]) => other.length - one.length);
  const said = sorted.map(([time, group], place) => {
    const all = place === 0 && pairs.length >= CHANNELS;
    const names = all ? t("everything") : namesOf(group);
    return place === 0 ? `${names}, ${time}` : `${names} ${time}`;
  });
  const words = said.join("; ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** List the channels of a group; the four voice channels are one name. */
function namesOf(group) {
  const names = group.map(([channel]) => CALLED[channel] ?? (channel.startsWith("voice:") ? t("voice") : channel));
  return [...new Set(names)].join(", ");
}

/** Convert grants, an object or an array, to pairs of channel and expiry in display order. */
export function grantsOf(grants) {
  let pairs = [];
  if (Array.isArray(grants)) {
    pairs = grants.map((each) => (typeof each === "string" ? [each, null] : [text(each?.channel ?? each?.name), each?.expires_at ?? null]));
  } else if (grants && typeof grants === "object") pairs = Object.entries(grants);
  const place = ([channel]) => (ORDER.includes(channel) ? ORDER.indexOf(channel) : channel.startsWith("voice:") ? 10 : 9);
  return pairs.sort((a, b) => place(a) - place(b) || a[0].localeCompare(b[0]));
}

/** Return the colour of an expiry. */
export function urgency(value) {
  if (value === null) return "plain";
  const left = (seconds(value) ?? Infinity) - now();
  if (left <= 0) return "bad";
  return left < SOON ? "warn" : "plain";
}

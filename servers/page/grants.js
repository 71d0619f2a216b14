// What a device may do, and for how long, in words.

import { expiry, now, seconds, text } from "./format.js";

const SOON = 3 * 86400; // s before an expiry from which on it is pointed out
const ORDER = ["chat", "bridge", "terminal", "tui"];
const CALLED = { __proto__: null, bridge: "phone control", tui: "desktop" }; // channels, in words
const CHANNELS = 8; // that there are: who holds them all may do everything

/** `Everything, 4 weeks; phone control 6 days`. Channels with the same time are said together, the most of them first. */
export function granted(grants) {
  const pairs = grantsOf(grants).filter(([, until]) => urgency(until) !== "bad");
  if (!pairs.length) return "Nothing";
  const groups = Map.groupBy(pairs, ([, until]) => (until === null ? "for good" : expiry(until)));
  const sorted = [...groups].sort(([, one], [, other]) => other.length - one.length);
  const said = sorted.map(([time, group], place) => {
    const all = place === 0 && pairs.length >= CHANNELS;
    const names = all ? "everything" : namesOf(group);
    return place === 0 ? `${names}, ${time}` : `${names} ${time}`;
  });
  const words = said.join("; ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Voice has four channels: those of one group are one word. */
function namesOf(group) {
  const names = group.map(([channel]) => CALLED[channel] ?? (channel.startsWith("voice:") ? "voice" : channel));
  return [...new Set(names)].join(", ");
}

/** Grants as pairs of channel and expiry, in the order in which people look for them; arrays are understood, too. */
export function grantsOf(grants) {
  let pairs = [];
  if (Array.isArray(grants)) {
    pairs = grants.map((each) => (typeof each === "string" ? [each, null] : [text(each?.channel ?? each?.name), each?.expires_at ?? null]));
  } else if (grants && typeof grants === "object") pairs = Object.entries(grants);
  const place = ([channel]) => (ORDER.includes(channel) ? ORDER.indexOf(channel) : channel.startsWith("voice:") ? 10 : 9);
  return pairs.sort((a, b) => place(a) - place(b) || a[0].localeCompare(b[0]));
}

/** How urgent an expiry is: a colour. */
export function urgency(value) {
  if (value === null) return "plain";
  const left = (seconds(value) ?? Infinity) - now();
  if (left <= 0) return "bad";
  return left < SOON ? "warn" : "plain";
}

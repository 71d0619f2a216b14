// Times, spans and sizes as people read them. What is missing or makes no sense is a dash.

export const DASH = "–";
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const LAST = 8.64e15; // ms, ECMA-262: what a date can hold
const SKEW = 3; // s by which clocks may differ without anybody minding: HTTP dates are whole seconds
// Made once: a page of ticking rows asks often, and making one of these is slow.
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
let ahead = null; // s that this device's clock is ahead of the host's

/** Epoch seconds of a time as the relay gives it: seconds, milliseconds, or text; null if there is none. */
export function seconds(value) {
  if (typeof value === "number") return Math.abs(value) <= LAST ? (value < 1e12 ? value : value / 1000) : null;
  if (typeof value !== "string" || !value) return null;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

/** Now by the host's clock, in epoch seconds: what is shown of times has the host's as well. */
export function now() {
  return Date.now() / 1000 - (ahead ?? 0);
}

/** What the host's clock says, an HTTP date. The first one counts; from then on this device's clock goes on by itself. */
export function heardClock(date) {
  const host = Date.parse(date ?? "");
  if (ahead !== null || Number.isNaN(host)) return;
  const difference = (Date.now() - host) / 1000;
  ahead = Math.abs(difference) < SKEW ? 0 : difference;
}

/** `1d 2h 3m`. */
export function uptime(span) {
  if (typeof span !== "number" || span < 0) return DASH;
  const parts = [[Math.floor(span / DAY), "d"], [Math.floor((span % DAY) / HOUR), "h"], [Math.floor((span % HOUR) / MINUTE), "m"]];
  const said = parts.filter(([n]) => n > 0).map(([n, unit]) => `${n}${unit}`);
  return said.join(" ") || `${Math.floor(span)}s`;
}

/** One unit is enough: `3 days`; `short` makes it `3d`. */
export function span(length, short = false) {
  const units = [[7 * DAY, "week", "w"], [DAY, "day", "d"], [HOUR, "hour", "h"], [MINUTE, "minute", "m"], [1, "second", "s"]];
  for (const [size, name, letter] of units) {
    const n = Math.floor(length / size);
    if (n >= (size === 7 * DAY ? 2 : 1)) return short ? `${n}${letter}` : `${n} ${name}${n === 1 ? "" : "s"}`;
  }
  return short ? "0s" : "0 seconds";
}

/** `just now`, `5 minutes ago`. */
export function ago(value) {
  const then = seconds(value);
  if (then === null) return DASH;
  const passed = now() - then;
  return passed < 5 ? "just now" : `${span(passed)} ago`;
}

/** Until when: `Never`, `Expired`, `3 days`, and a date if it is far away. */
export function expiry(value, short = false) {
  if (value === null) return short ? "never" : "Never";
  const then = seconds(value);
  if (then === null) return DASH;
  const left = then - now();
  if (left <= 0) return short ? "expired" : "Expired";
  // What was given for a day a moment ago is a day, not 23 hours.
  return left > 26 * 7 * DAY ? day(then) : span(left > HOUR - MINUTE ? left + MINUTE : left, short);
}

/** `4:05`, `1:04:05`: what is left of a countdown. */
export function countdown(left) {
  const whole = Math.max(0, Math.ceil(left));
  const pad = (n) => `${n}`.padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / HOUR), Math.floor((whole % HOUR) / MINUTE), whole % MINUTE];
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

/** A date. */
export function day(value) {
  const then = seconds(value);
  return then === null ? DASH : DATE.format(then * 1000);
}

/** A time of day; with its date if it is not today's. */
export function clock(value) {
  const then = seconds(value);
  if (then === null) return DASH;
  const date = new Date(then * 1000);
  const time = TIME.format(date);
  return date.toDateString() === new Date(now() * 1000).toDateString() ? time : `${day(then)}, ${time}`;
}

/** In full, for a tooltip. */
export function moment(value) {
  const then = seconds(value);
  return then === null ? null : FULL.format(then * 1000);
}

/** `512 B`, `1.4 KB`, `3.2 MB`. */
export function size(bytes) {
  if (typeof bytes !== "number" || bytes < 0) return DASH;
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** The value if it is a number or text that can be seen, else a dash. */
export function text(value) {
  return typeof value === "number" || (typeof value === "string" && /[^\s\p{C}]/u.test(value)) ? `${value}` : DASH;
}

/** A name for a question of the browser's own: on one line, and whatever it holds, it turns nothing else around. */
export function plain(name) {
  const line = name.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, " ");
  return `\u2068${line.length > 80 ? `${line.slice(0, 79)}…` : line}\u2069`;
}

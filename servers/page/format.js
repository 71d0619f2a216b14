// Times, spans and sizes as people read them. What is missing or makes no sense is a dash.

export const DASH = "–";
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

/** Epoch seconds of a time as the relay gives it: seconds, milliseconds, or text; null if there is none. */
export function seconds(value) {
  if (typeof value === "number" && Number.isFinite(value)) return value < 1e12 ? value : value / 1000;
  if (typeof value !== "string" || !value) return null;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

/** Now, in epoch seconds. */
export function now() {
  return Date.now() / 1000;
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
  return left > 26 * 7 * DAY ? day(then) : span(left, short);
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
  return then === null ? DASH : new Date(then * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** A time of day; with its date if it is not today's. */
export function clock(value) {
  const then = seconds(value);
  if (then === null) return DASH;
  const date = new Date(then * 1000);
  const time = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return date.toDateString() === new Date().toDateString() ? time : `${day(then)}, ${time}`;
}

/** In full, for a tooltip. */
export function moment(value) {
  const then = seconds(value);
  return then === null ? null : new Date(then * 1000).toLocaleString();
}

/** `512 B`, `1.4 KB`, `3.2 MB`. */
export function size(bytes) {
  if (typeof bytes !== "number" || bytes < 0) return DASH;
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** The value if it is text or a number, else a dash. */
export function text(value) {
  return (typeof value === "string" && value) || typeof value === "number" ? `${value}` : DASH;
}

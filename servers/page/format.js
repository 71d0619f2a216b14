// Readable times, durations and sizes. A missing or invalid value is a dash.

import { locale, t } from "./i18n.js";

export const DASH = "–";
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const LAST = 8.64e15; // ms, ECMA-262: the latest valid date
const SKEW = 3; // s of clock difference that are ignored: HTTP dates are whole seconds
// Created once: creation is slow, and rows format their times every second.
const DATE = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const TIME = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const FULL = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const UNITS = [[7 * DAY, "week"], [DAY, "day"], [HOUR, "hour"], [MINUTE, "minute"], [1, "second"]];
const LONG = UNITS.map(([, unit]) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" }));
const SHORT = UNITS.map(([, unit]) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "narrow" }));
const PAST = new Intl.RelativeTimeFormat(locale);
let ahead = null; // s that this device's clock is ahead of the host's

/** Convert a time of the relay (seconds, milliseconds or text) to epoch seconds; null if there is none. */
export function seconds(value) {
  if (typeof value === "number") return Math.abs(value) <= LAST ? (value < 1e12 ? value : value / 1000) : null;
  if (typeof value !== "string" || !value) return null;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? null : parsed / 1000;
}

/** Return the host's time in epoch seconds, since all displayed times are the host's. */
export function now() {
  return Date.now() / 1000 - (ahead ?? 0);
}

/** Set the host's time from an HTTP date. Only the first date counts; this device's clock continues from there. */
export function heardClock(date) {
  const host = Date.parse(date ?? "");
  if (ahead !== null || Number.isNaN(host)) return;
  const difference = (Date.now() - host) / 1000;
  ahead = Math.abs(difference) < SKEW ? 0 : difference;
}

/** Format a duration in s: `1d 2h 3m`. */
export function uptime(span) {
  if (typeof span !== "number" || span < 0) return DASH;
  const parts = [Math.floor(span / DAY), Math.floor((span % DAY) / HOUR), Math.floor((span % HOUR) / MINUTE)];
  const said = parts.map((n, place) => (n > 0 ? SHORT[place + 1].format(n) : "")).filter(Boolean);
  return said.join(" ") || SHORT.at(-1).format(Math.floor(span));
}

/** Format a duration in s with one unit: `3 days`; with `short` `3d`. */
export function span(length, short = false) {
  const [n, place] = largest(length);
  return (short ? SHORT : LONG)[place].format(n);
}

/** Format how long ago something was: `3 days ago`; with `short` `3d ago`. */
export function past(length, short = false) {
  const [n, place] = largest(length);
  return short ? t("{span} ago", { span: SHORT[place].format(n) }) : PAST.format(-n, UNITS[place][1]);
}

/** Return a duration in s in its largest unit, and the place of the unit; weeks from two on. */
function largest(length) {
  const place = UNITS.findIndex(([size]) => length >= (size === 7 * DAY ? 2 * size : size));
  return place < 0 ? [0, UNITS.length - 1] : [Math.floor(length / UNITS[place][0]), place];
}

/** Format a past time: `just now`, `5 minutes ago`. */
export function ago(value) {
  const then = seconds(value);
  if (then === null) return DASH;
  const passed = now() - then;
  return passed < 5 ? t("just now") : past(passed);
}

/** Format an expiry: `Never`, `Expired`, `3 days`, or a date in the far future. */
export function expiry(value, short = false) {
  if (value === null) return short ? t("never") : t("Never");
  const then = seconds(value);
  if (then === null) return DASH;
  const left = then - now();
  if (left <= 0) return short ? t("expired") : t("Expired");
  // A minute is added, so that a day granted a moment ago is a day and not 23 hours.
  return left > 26 * 7 * DAY ? day(then) : span(left > HOUR - MINUTE ? left + MINUTE : left, short);
}

/** Format the remaining s of a countdown: `4:05`, `1:04:05`. */
export function countdown(left) {
  const whole = Math.max(0, Math.ceil(left));
  const pad = (n) => `${n}`.padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / HOUR), Math.floor((whole % HOUR) / MINUTE), whole % MINUTE];
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

/** Format a date. */
export function day(value) {
  const then = seconds(value);
  return then === null ? DASH : DATE.format(then * 1000);
}

/** Format a time of day; with its date if that is not today. */
export function clock(value) {
  const then = seconds(value);
  if (then === null) return DASH;
  const date = new Date(then * 1000);
  const time = TIME.format(date);
  return date.toDateString() === new Date(now() * 1000).toDateString() ? time : `${day(then)}, ${time}`;
}

/** Format date and time for a tooltip; null if there is no time. */
export function moment(value) {
  const then = seconds(value);
  return then === null ? null : FULL.format(then * 1000);
}

/** Format a size: `512 B`, `1.4 KB`, `3.2 MB`. */
export function size(bytes) {
  if (typeof bytes !== "number" || bytes < 0) return DASH;
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Return a number or visible text as text, else a dash. */
export function text(value) {
  return typeof value === "number" || (typeof value === "string" && /[^\s\p{C}]/u.test(value)) ? `${value}` : DASH;
}

/** Return a name in one line, isolated so that its characters cannot reorder the surrounding text. */
export function plain(name) {
  const line = name.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, " ");
  return `\u2068${line.length > 80 ? `${line.slice(0, 79)}…` : line}\u2069`;
}

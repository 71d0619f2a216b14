// Timeline of bridge commands: one row for each decision, one mark for each command, time from left to right.

import { h, s } from "./dom.js";
import { clock, now, past, seconds } from "./format.js";
import { t } from "./i18n.js";
import { deed } from "./sentences.js";

/** Name, title and sign of each decision, in the order of the rows. */
export const DECISIONS = [
  ["executed", t("Executed"), "check"],
  ["confirmed", t("Confirmed"), "person"],
  ["blocked", t("Blocked"), "shield"],
  ["timeout", t("Timeout"), "hourglass"],
  ["error", t("Error"), "cross"],
  ["pending", t("Pending"), "clock"],
];

// Seconds of a time window, and its number of axis steps on a wide and on a narrow screen. The smallest window that
// holds all commands is used.
const WINDOWS = [[60, 4, 2], [300, 5, 1], [900, 3, 1], [3600, 4, 2], [6 * 3600, 6, 2], [86400, 4, 2]];
const NARROW = 640; // px of width below which the axis has fewer and shorter labels
const LEFT = 104; // px for the titles
const RIGHT = 6;
const LANE = 26;
const TOP = 6;
const INSETS = 38; // px of the frame around it

/** Draw the records, as wide as `room` pixels; `onPick(record)` when a mark is chosen. */
export function timeline(records, room, onPick) {
  const wide = Math.max(280, room - INSETS);
  const end = now();
  const oldest = Math.min(...records.map((each) => seconds(each.sent_at) ?? end));
  const [width, many, few] = WINDOWS.find(([each]) => end - oldest <= each) ?? WINDOWS.at(-1);
  const start = end - width;
  const lanes = DECISIONS.filter(([name]) => name === "executed" || records.some((each) => laneOf(each) === name));
  const floor = TOP + lanes.length * LANE;
  const x = (time) => LEFT + 4 + ((time - start) / width) * (wide - LEFT - RIGHT - 8);
  const inside = records.filter((each) => (seconds(each.sent_at) ?? end) >= start);
  const steps = wide < NARROW ? few : many;

  const marks = Array.from({ length: steps + 1 }, (_, n) => {
    const at = start + (width * n) / steps;
    const said = n === steps ? t("now") : past((width * (steps - n)) / steps, wide < NARROW);
    const anchor = n === steps ? "end" : n === 0 ? "start" : "middle";
    return [
      s("line", { class: "grid", x1: x(at), x2: x(at), y1: TOP, y2: floor }),
      s("text", { class: "axis", x: x(at), y: floor + 17, "text-anchor": anchor }, said),
    ];
  });
  const rows = lanes.map(([name, title], place) => {
    const y = TOP + place * LANE + LANE / 2;
    const mine = inside.filter((each) => laneOf(each) === name);
    return s("g", { class: `lane ${name}` },
      s("line", { class: "rail", x1: LEFT, x2: wide - RIGHT, y1: y, y2: y }),
      s("text", { class: "title", x: 0, y: y + 4 }, title),
      s("text", { class: "total", x: LEFT - 12, y: y + 4, "text-anchor": "end" }, mine.length ? `${mine.length}` : ""),
      mine.map((each) => mark(each, x(seconds(each.sent_at) ?? end), y, onPick)));
  });
  const cut = records.length - inside.length;
  const picture = s(
    "svg",
    { class: "timeline", viewBox: `0 0 ${wide} ${floor + 22}`, role: "img", "aria-label": told(records, oldest) },
    marks,
    rows,
  );
  return h("figure", {}, picture, h("figcaption", {},
    records.length === 1 ? t("The last command") : t("The last {count} commands", { count: records.length }), cut ? t(", {count} of them before this picture begins", { count: cut }) : ""));
}

/** Describe the timeline for screen readers. */
function told(records, oldest) {
  const counts = DECISIONS.map(([name, title]) => [records.filter((each) => laneOf(each) === name).length, title.toLowerCase()]);
  const parts = counts.filter(([n]) => n).map(([n, title]) => `${n} ${title}`);
  return t("Commands since {time}: {counts}.", { time: clock(oldest), counts: parts.join(", ") || t("none") });
}

function mark(record, x, y, onPick) {
  const name = `${deed(record)}, ${clock(record.sent_at)}`;
  return s("g", { class: "mark-of", onclick: () => onPick(record) }, s("title", {}, name),
    s("rect", { class: "reach", x: (x - 7).toFixed(1), y: y - 12, width: 14, height: 24 }),
    s("rect", { x: (x - 2.5).toFixed(1), y: y - 8, width: 5, height: 16, rx: 2.5 }));
}

/** Return the row of a record; an unknown decision counts as pending. */
function laneOf(record) {
  return DECISIONS.some(([name]) => name === record.decision) ? record.decision : "pending";
}

// Load: measurements of this host's servers, now and in the last hour.

import { h, reconcile, s } from "./dom.js";
import { DASH, clock, past, size } from "./format.js";
import { locale, t } from "./i18n.js";
import { vitals } from "./net.js";
import { dataView, empty } from "./view.js";

const EVERY = 5; // s
const [WIDE, HIGH] = [240, 56]; // units of a chart, which is as wide as its card
const BREAK = 2.5; // sampling intervals without a sample after which a line has a gap

// For each chart: title, name of the number, its format, name of a second number or null, and the hint.
const CHARTS = [
  [t("Phones"), "phones", count, null, (now) => t("{count} paired", { count: count(now.sessions) })],
  [t("Sockets"), "sockets", count, null, (now) => t("{count} descriptors open", { count: count(now.descriptors) })],
  [t("Requests"), "requests", rate, "errors", (now) => (now.errors ? t("{rate} fail", { rate: rate(now.errors) }) : t("no errors"))],
  [t("Commands to phones"), "commands", perMinute, "failed", (now) => [t("{count} under way", { count: count(now.waiting) }), ...(now.failed ? [t("{rate} fail", { rate: perMinute(now.failed) })] : [])].join(", ")],
  [t("Turns under way"), "turns", count, null, (now) => t("{rate} end", { rate: perMinute(now.ended) })],
  [t("Tokens"), "tokens", rate, null, (now) => typeof now.deltas === "number" ? t("{count} pieces of text a second", { count: count(now.deltas) }) : DASH],
  [t("Memory"), "memory", size, null, (now) => t("{size} for unauthenticated peers", { size: size(now.strangers) })],
  [t("Processor"), "processor", share, null, () => t("of one core")],
  [t("Loop lag"), "lag", time, null, (now) => (now.latest === null ? "" : t("none above {time}", { time: time(now.latest) }))],
  [t("Store"), "store", time, null, () => t("for an answer")],
];

export function openLoad(room, auto) {
  const content = h("div");
  const charts = h("div", { class: "charts" });
  const note = h("p", { class: "sub bare" });
  const nothing = empty("pulse", t("No numbers yet"), t("Neither the relay nor the API server has reported numbers yet. They appear here as soon as one of the two does."));
  return dataView(room, {
    every: EVERY,
    auto,
    content,
    load: vitals,
    render: (data) => {
      const looks = [...data.rows, data.now].map((row) => Object.fromEntries(data.names.map((name, place) => [name, row[place]])));
      const now = looks.at(-1);
      const silent = Object.entries(data.answers).filter(([, there]) => !there).map(([role]) => (role === "api" ? t("API server") : role));
      if (!looks.some((look) => CHARTS.some(([, name]) => look[name] !== null))) {
        reconcile(content, [nothing]);
        return;
      }
      charts.replaceChildren(...CHARTS.map((chart) => figure(chart, looks, data, now)));
      note.textContent = [
        silent.length ? t("No numbers at the moment from: {servers}.", { servers: silent.join(", ") }) : "",
        looks.length < 3 ? t("The charts fill over time: one sample every {count} seconds.", { count: data.every }) : "",
      ].join(" ").trim();
      reconcile(content, note.textContent ? [charts, note] : [charts]);
    },
  });
}

function figure([title, name, said, second, hint], looks, data, now) {
  const known = looks.map((look) => look[name]).filter((value) => value !== null);
  const most = Math.max(0, ...known);
  const told = known.length ? t("now {now}, least {least}, most {most}", { now: said(now[name]), least: said(Math.min(...known)), most: said(most) }) : t("no number yet");
  return h("figure", { class: "card" },
    h("figcaption", { class: "title" }, title),
    h("div", { class: "value" }, said(now[name])),
    h("div", { class: second && now[second] ? "hint bad" : "hint" }, hint(now)),
    picture(t("{title} since {time}: {numbers}.", { title, time: clock(looks[0].at), numbers: told }), looks, [name, second], most, now.at - data.span, data),
    h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, past(data.span, true)), h("span", {}, known.length ? t("most {value}", { value: said(most) }) : ""), h("span", {}, t("now"))));
}

function picture(label, looks, [first, second], most, start, { every, span: width }) {
  const x = (look) => (((look.at - start) / width) * WIDE).toFixed(1);
  const y = (value) => (HIGH - 1 - (most ? value / most : 0) * (HIGH - 4)).toFixed(1);
  const shown = looks.filter((look) => look.at >= start);
  const drawn = (name) => pieces(shown, name, every).map((piece) => piece.map((look) => `${x(look)} ${y(look[name])}`));
  const lines = drawn(first);
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("path", { class: "rail", d: `M0 ${HIGH - 1}H${WIDE}` }),
    lines.map((line) => s("path", { class: "under", d: `M${line.join("L")}L${line.at(-1).split(" ")[0]} ${HIGH - 1}L${line[0].split(" ")[0]} ${HIGH - 1}Z` })),
    lines.map((line) => s("path", { d: `M${line.join("L")}` })),
    second && shown.some((look) => look[second]) ? drawn(second).map((line) => s("path", { class: "second", d: `M${line.join("L")}` })) : null);
}

/** Split samples into runs without a gap. */
function pieces(looks, name, every) {
  const found = [[]];
  for (const look of looks) {
    const last = found.at(-1).at(-1);
    if (look[name] === null || (last && look.at - last.at > BREAK * every)) found.push([]);
    if (look[name] !== null) found.at(-1).push(look);
  }
  return found.filter((piece) => piece.length > 1);
}

// --- formats of numbers; null is a dash

function count(value) {
  if (typeof value !== "number") return DASH;
  return value >= 100 || Number.isInteger(value) ? `${Math.round(value).toLocaleString(locale)}` : value.toPrecision(2);
}

function rate(value) {
  return typeof value === "number" ? t("{count} a second", { count: count(value) }) : DASH;
}

function perMinute(value) {
  return typeof value === "number" ? t("{count} a minute", { count: count(Number((value * 60).toPrecision(3))) }) : DASH;
}

function share(value) {
  return typeof value === "number" ? `${count(Number((value * 100).toPrecision(2)))} %` : DASH;
}

function time(value) {
  if (typeof value !== "number") return DASH;
  return value < 1 ? `${count(Number((value * 1000).toPrecision(2)))} ms` : `${count(value)} s`;
}

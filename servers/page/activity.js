// Activity: commands to phones and their outcomes, as a timeline and as a list.

import { h, icon, Keyed, put, reconcile, ticking } from "./dom.js";
import { ago, clock, moment, text } from "./format.js";
import { t } from "./i18n.js";
import { relay } from "./net.js";
import { deed } from "./sentences.js";
import { DECISIONS, timeline } from "./timeline.js";
import { dataView, empty, row, table } from "./view.js";

const EVERY = 5; // s
const LIMIT = 100;
let made = 0; // rows of details so far, for their ids
const COLUMNS = [t("What"), t("Outcome"), t("When")];

export function openActivity(room, auto) {
  const chips = h("div", { class: "chips", role: "group", "aria-label": t("Show") });
  const picture = h("div", { class: "picture" });
  const list = h("div");
  const content = h("div", {}, picture, chips, list);
  const commands = table(t("Commands"), COLUMNS);
  const kept = new Keyed();
  const unfolded = new Set();
  const nothing = empty("screen", t("No command yet"), t("Each command of the agent to a phone appears here with its outcome."));
  let records = [];
  let wanted = "all";

  function show() {
    const count = (name) => (name === "all" ? records.length : records.filter((each) => each.decision === name).length);
    for (const chip of chips.children) {
      chip.setAttribute("aria-pressed", `${chip.dataset.name === wanted}`);
      chip.lastChild.textContent = `${count(chip.dataset.name)}`;
    }
    if (!records.length) {
      reconcile(content, [nothing]);
      return;
    }
    reconcile(content, [picture, chips, list]);
    draw();
    const chosen = records.filter((each) => wanted === "all" || each.decision === wanted);
    if (!chosen.length) {
      reconcile(list, [h("p", { class: "bare" }, t("None of the recent commands ended this way."))]);
      return;
    }
    reconcile(commands.body, kept.nodes(chosen, keyOf, ({ item }) => commandRows(item, unfolded)).flat());
    reconcile(list, [commands.element]);
  }

  function draw() {
    if (records.length) picture.replaceChildren(timeline(records, picture.clientWidth, unfold));
  }

  function unfold(record) {
    if (wanted !== "all" && wanted !== record.decision) wanted = "all";
    unfolded.add(keyOf(record));
    show();
    const button = [...commands.body.querySelectorAll("button.unfold")].find((each) => each.dataset.key === keyOf(record));
    if (button?.getAttribute("aria-expanded") === "false") button.click();
    button?.focus();
    button?.scrollIntoView({ block: "center" });
  }

  for (const [name, title] of [["all", t("All")], ...DECISIONS.filter(([each]) => each !== "pending")]) {
    chips.append(h("button", { type: "button", class: "chip", "data-name": name, onclick: () => { wanted = name; show(); } }, title, h("small", {}, "0")));
  }
  const resized = new ResizeObserver(draw);
  resized.observe(picture);
  const view = dataView(room, {
    every: EVERY,
    auto,
    content,
    load: (signal) => relay("GET", `/bridge-activity?limit=${LIMIT}`, undefined, signal),
    render: (data) => {
      records = (Array.isArray(data) ? data : data.activity ?? []).slice(0, LIMIT);
      show();
    },
  });
  return { ...view, close: () => { resized.disconnect(); view.close(); } };
}

function keyOf(record) {
  return `${record.request_id ?? record.sent_at}`;
}

/** Build a command's row, and the row of its details. */
function commandRows(record, unfolded) {
  const key = keyOf(record);
  const id = `details-${(made += 1)}`;
  const button = h("button", { class: "unfold", type: "button", "data-key": key, "aria-expanded": "false", "aria-controls": id }, icon("down"),
    h("span", { class: "aside" }, t("Details of {what}", { what: text(record.path) })));
  const problem = typeof record.error === "string" && record.error ? h("div", { class: "sub" }, h("span", { class: "error" }, record.error)) : null;
  const head = row(COLUMNS, [
    h("div", { class: "what" }, button, h("div", {}, h("span", { class: "deed" }, deed(record)), problem)),
    decisionBadge(record.decision),
    [h("div", {}, h("time", { title: moment(record.sent_at) }, clock(record.sent_at)),
      ticking(h("div", { class: "sub" }), (each) => put(each, ago(record.sent_at)))), { class: "when" }],
  ], { class: "command" });
  const details = h("tr", { role: "row", class: "details", id, hidden: true }, h("td", { role: "cell", colspan: `${COLUMNS.length}` },
    h("dl", {},
      pair(t("Command"), [h("code", {}, `${text(record.method)} ${text(record.path)}`), ` ${t("answered {status}", { status: text(record.response_status) })}`]),
      pair(t("Request id"), h("code", {}, text(record.request_id))),
      record.device_name ? pair(t("Device"), text(record.device_name)) : null,
      record.asked_by ? pair(t("Asked by"), text(record.asked_by)) : null,
      pair(t("Parameters"), h("pre", { tabindex: "0" }, JSON.stringify(record.params ?? {}, null, 2))),
      pair(t("Result"), h("pre", { tabindex: "0" }, text(record.result_summary))))));
  const toggle = () => {
    const open = details.hidden;
    details.hidden = !open;
    head.classList.toggle("open", open);
    button.setAttribute("aria-expanded", `${open}`);
    if (open) unfolded.add(key);
    else unfolded.delete(key);
  };
  head.addEventListener("click", () => { if (!getSelection()?.toString()) toggle(); });
  if (unfolded.has(key)) toggle();
  return [head, details];
}

function pair(title, inside) {
  return [h("dt", {}, title), h("dd", {}, inside)];
}

/** Build the badge of a command's outcome: a colour, a sign and a word. */
export function decisionBadge(decision) {
  const [name, title, sign] = DECISIONS.find(([each]) => each === decision) ?? ["pending", text(decision), "clock"];
  return h("span", { class: `badge decision ${name}` }, icon(sign), title);
}

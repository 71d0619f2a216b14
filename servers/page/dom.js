// Elements from data. Text always becomes a text node, so text of a device, a file or an agent is never markup.

import { t } from "./i18n.js";

const SVG = "http://www.w3.org/2000/svg";

/** Build an element: `h("a", { href: "#x", class: "y", onclick: f }, "text", child, [more])`. Skips false and null. */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** Build an SVG element, with arguments as for `h`. */
export function s(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

/** Build an icon by its name; screen readers ignore it. */
export function icon(name) {
  const [lines, filled] = ICONS[name].split("|");
  return s("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    s("path", { d: lines }), filled ? s("path", { class: "filled", d: filled }) : null);
}

/** Put `nodes` into `parent` in this order. Nodes in place are not touched, so that focus and scrolling stay. */
export function reconcile(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, place) => {
    if (parent.childNodes[place] !== node) parent.insertBefore(node, parent.childNodes[place] ?? null);
  });
}

/**
 * Keeps one node for each item, and rebuilds it only if the item has changed. `make(live)` returns one or several nodes
 * and reads `live.item`. Changes of members named in `volatile` rebuild nothing: such members are read at each display.
 */
export class Keyed {
  #kept = new Map();
  #volatile;

  constructor(...volatile) {
    this.#volatile = volatile;
  }

  nodes(items, keyOf, make) {
    const fresh = new Map();
    const nodes = items.map((item, place) => {
      const key = `${keyOf(item)}`;
      const name = fresh.has(key) ? `${key} ${place}` : key;
      const state = JSON.stringify(item, (member, value) => (this.#volatile.includes(member) ? undefined : value));
      let entry = this.#kept.get(name);
      if (entry?.state === state) entry.live.item = item;
      else {
        const live = { item };
        const node = make(live);
        if (entry) keepFocus(entry.node, node);
        entry = { state, live, node };
      }
      fresh.set(name, entry);
      return entry.node;
    });
    this.#kept = fresh;
    return nodes;
  }
}

function keepFocus(before, after) {
  const choices = (node) => [node].flat().flatMap((each) => [each, ...each.querySelectorAll("button, a, input, summary, [tabindex]")]);
  const place = choices(before).indexOf(document.activeElement);
  if (place >= 0) queueMicrotask(() => choices(after)[place]?.focus());
}

const alive = new Set();

/** Update an element now, and every second while it is on the page. */
export function ticking(element, update) {
  update(element);
  alive.add({ element, update });
  return element;
}

setInterval(() => {
  if (document.hidden) return;
  for (const each of alive) {
    if (each.element.isConnected) each.update(each.element);
    else if (each.seen) alive.delete(each); // removed from the page, not just about to be added
    else each.seen = true;
  }
}, 1000);

/** Set text and tooltip of an element. Equal values are not written, since many elements update every second. */
export function put(element, words, title = "") {
  if (element.textContent !== words) element.textContent = words;
  if (element.title !== title) element.title = title;
}

/** Announce a text to screen readers. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** Build a button that copies a text and confirms briefly. A button without a label needs an `aria-label`. */
export function copyButton(text, label, props = {}) {
  const button = h("button", { class: label ? "quiet" : "quiet round", type: "button", ...props }, icon("copy"), label);
  button.addEventListener("click", async () => {
    const done = await Promise.resolve(navigator.clipboard?.writeText(text) ?? false).then((said) => said !== false, () => false);
    const said = done ? t("Copied") : t("Could not copy");
    button.replaceChildren(icon(done ? "check" : "cross"), label ? said : "");
    announce(said);
    setTimeout(() => button.replaceChildren(icon("copy"), label ?? ""), 1500);
  });
  return button;
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Paths in a box of 16 by 16; a filled path follows a bar.
const ICONS = {
  plus: "M8 3v10M3 8h10",
  copy: "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z",
  refresh: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6M8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13 9.6A5.6 5.6 0 1 1 6.4 3a4.6 4.6 0 0 0 6.6 6.6z",
  auto: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12|M8 2a6 6 0 0 0 0 12z",
  send: "M8 13V3M3.8 7.2L8 3l4.2 4.2",
  stop: "M4.5 4.5h7v7h-7z",
  dots: "|M3 6.6a1.4 1.4 0 1 0 0 2.8a1.4 1.4 0 1 0 0-2.8M8 6.6a1.4 1.4 0 1 0 0 2.8a1.4 1.4 0 1 0 0-2.8M13 6.6a1.4 1.4 0 1 0 0 2.8a1.4 1.4 0 1 0 0-2.8",
  down: "M4 6.5L8 10.5L12 6.5",
  phone: "M5 1.5h6a1 1 0 0 1 1 1v11a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-11a1 1 0 0 1 1-1zM7 12.5h2",
  screen: "M2 3h12v8H2zM6 14h4M8 11v3",
  spark: "M8 2l1.5 4.5L14 8l-4.5 1.5L8 14l-1.5-4.5L2 8l4.5-1.5z",
  file: "M4 1.5h5l3 3v10H4zM9 1.5v3h3",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.5 14.5h3",
  chat: "M2 3h12v8H7l-3 3v-3H2z",
  clip: "M12.5 7.2L7.6 12a3 3 0 0 1-4.2-4.2l5.5-5.4a2 2 0 0 1 2.8 2.8l-5.4 5.4a1 1 0 0 1-1.4-1.4l4.6-4.6",
  pen: "M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2zM9.4 4.4l2.2 2.2",
  pin: "M6 2h4l-.5 4.5L12 9H4l2.5-2.5zM8 9v5",
  box: "M2 3h12v3H2zM3 6v7.5h10V6M6.5 8.5h3",
  export: "M8 2v8M4.8 7L8 10.2 11.2 7M3 13.5h10",
  camera: "M2 5h3l1-2h4l1 2h3v8H2zM8 6.8a2.2 2.2 0 1 0 0 4.4a2.2 2.2 0 1 0 0-4.4",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 9h5.8l.6-9",
  tool: "M10.5 2a3.5 3.5 0 0 0-3.2 4.9L2.5 11.7l1.8 1.8 4.8-4.8A3.5 3.5 0 0 0 14 5.5L11.8 7 9.5 6 9 3.7z",
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  clock: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12M8 5v3.2l2 1.4",
  shield: "M8 1.8l5 1.8v4c0 3-2 5.3-5 6.6c-3-1.3-5-3.6-5-6.6v-4z",
  hourglass: "M4.5 2h7M4.5 14h7M5.5 2c0 3.5 5 3.5 5 6s-5 2.5-5 6M10.5 2c0 3.5-5 3.5-5 6s5 2.5 5 6",
  pulse: "M1.5 8.5h3L6.5 3l3 10 2-4.5h3",
  person: "M8 2.2a2.6 2.6 0 1 0 0 5.2a2.6 2.6 0 1 0 0-5.2M2.8 14c.4-3 2.4-4.6 5.2-4.6s4.8 1.6 5.2 4.6",
};

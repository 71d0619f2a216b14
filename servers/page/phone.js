// Phone: the screen of the reference phone (`svc phone`), which shows the agent's actions and takes the user's taps.
// Beside it the user writes to the agent as from a phone: as text, or as speech, with text in place of a microphone.

import { announce, h, Keyed, put, reconcile, ticking } from "./dom.js";
import { t } from "./i18n.js";
import { phone } from "./net.js";
import { Prose } from "./prose.js";
import { keyboardFrame, watchTouches } from "./touch.js";
import { empty } from "./view.js";

const AGAIN = 2000; // ms between two attempts while there is no phone
const MEANT = 1000; // ms in which a click may be meant for the previous question
const MOST_WORDS = 5000; // characters of a voice turn
const KEYS = [["back", t("Back")], ["home", t("Home")], ["recents", t("Recent apps")]];
const ASKS = {
  __proto__: null,
  "/call": t("Make this call?"),
  "/send_sms": t("Send this message?"),
  "/send_mms": t("Send this picture?"),
  "/share_media": t("Share this file?"),
};

/** Show the reference phone in `room`; `onState` gets its name, or null while none answers. */
export function openPhone(room, onState) {
  const name = h("h3", {});
  const problem = h("div", { class: "problem", role: "alert", hidden: true });
  const master = h("input", { type: "checkbox", role: "switch" });
  const about = h("p", { class: "sub" });
  const asks = h("div", { class: "asks" });
  const glass = h("div", { class: "glass", role: "group", "aria-label": t("Screen of the phone") });
  const words = h("input", { "aria-label": t("Text for the phone"), placeholder: t("Type into the phone"), autocomplete: "off" });
  const typing = h("form", { class: "joined" }, words, h("button", { type: "submit" }, t("Type")));
  const wake = h("button", { type: "button", class: "main", onclick: () => touch({ kind: "wake" }) }, t("Wake"));
  const keys = h("div", { class: "keys", role: "group", "aria-label": t("Keys of the phone") },
    KEYS.map(([key, title]) => h("button", { type: "button", onclick: () => touch({ kind: "key", key }) }, title)), wake);
  const body = h("div", { class: "handset" }, keyboardFrame(glass, () => size, touch), keys, typing);
  const lines = h("div", { class: "lines", role: "log", "aria-label": t("Talk with the agent"), tabindex: "0" });
  const word = h("input", { "aria-label": t("Message from the phone"), placeholder: t("Message the agent"), autocomplete: "off", maxlength: MOST_WORDS });
  const aloud = h("input", { type: "checkbox", role: "switch" });
  const saying = h("form", {}, h("div", { class: "joined" }, word, h("button", { type: "submit", class: "main" }, t("Send"))),
    h("label", { class: "switch" }, aloud, h("span", {}, t("Say it aloud"))));
  const talk = h("section", { class: "talking" }, h("h3", {}, t("Talk from this phone")), lines, saying);
  const side = h("div", { class: "beside" }, name, about, h("label", { class: "switch" }, master, h("span", {}, t("Device Control"))), asks);
  const nothing = empty("phone", t("No reference phone is here"), t("Run svc phone on this host: it pairs by itself, and its screen appears here. The agent moves it, and so can you."));
  const waiting = h("p", { class: "waiting", role: "status" }, t("Looking for a phone…"));
  const hint = h("p", { class: "note" });
  const windows = new Map(); // element and parts by window number
  const spoken = new Keyed("text");
  const answers = new WeakMap();
  const questions = new Keyed();
  const closing = new AbortController();
  const { signal } = closing;
  let state = null;
  let size = { width: 1, height: 1 };

  room.append(waiting);
  watch();

  async function watch() {
    while (!signal.aborted) {
      try {
        await seen();
        show(await phone("GET", state ? `/screen?seen=${encodeURIComponent(state.tag)}` : "/screen", undefined, signal));
      } catch (error) {
        if (signal.aborted) return;
        state = null;
        onState(null);
        reconcile(room, error.code === "no_phone" ? [nothing] : [problem]);
        fail(error);
        await new Promise((done) => { setTimeout(done, AGAIN); });
      }
    }
  }

  /** Wait until the page is visible. */
  function seen() {
    return document.hidden
      ? new Promise((done) => { document.addEventListener("visibilitychange", done, { once: true, signal }); })
      : null;
  }

  function show(next) {
    state = next;
    onState(next.name);
    problem.hidden = true;
    reconcile(room, [side, body, talk]);
    if (problem.parentNode !== side) asks.before(problem);
    put(name, next.name);
    put(about, [next.online ? t("Connected") : t("Not connected to the relay"), t("battery {count} %", { count: next.battery })].join(" · "));
    master.checked = next.device_control;
    wake.hidden = next.screen_on;
    draw(next);
    hear(next);
    reconcile(asks, questions.nodes(next.questions, (each) => each.id, ({ item }) => ask(item)));
    if (next.questions.length) announce(t("The phone requests confirmation"));
  }

  // --- the screen

  function draw({ screen, screen_on: lit }) {
    const nodes = screen.nodes ?? [];
    const frame = screen.rootBounds;
    if (frame) size = { width: frame.right, height: frame.bottom };
    glass.classList.toggle("dark", !lit);
    glass.style.aspectRatio = `${size.width} / ${size.height}`;
    typing.hidden = !nodes.some((each) => each.editable);
    if (!nodes.length) {
      glass.replaceChildren(h("p", { class: "unread" }, lit ? screen.error ?? t("Nothing can be seen.") : t("The display is off.")));
      return;
    }
    const layers = Object.entries(Object.groupBy(nodes, windowOf)).sort(([a], [b]) => b - a);
    const top = layers.at(-1)[0];
    reconcile(glass, layers.map(([index, parts]) => layer(index, parts, index === top)));
  }

  /** Build one window; windows below the topmost one are inert. Unchanged parts keep their elements. */
  function layer(index, parts, isTop) {
    if (!windows.has(index)) windows.set(index, { element: h("div", { class: "layer" }), kept: new Keyed("nodeId") });
    const { element, kept } = windows.get(index);
    element.inert = !isTop;
    const spots = parts.filter((each) => each.clickable || each.editable);
    const shown = parts.filter((each) => each.clickable || each.editable || each.text).map((node) => spots.includes(node)
      ? { node, size, inside: parts.filter((each) => each.text && holds(node.bounds, each.bounds)).map((each) => each.text) }
      : { node, size, covered: spots.some((other) => holds(other.bounds, node.bounds)) });
    const place = ({ node: { className, bounds } }) => [className, ...Object.values(bounds)].join(" ");
    reconcile(element, kept.nodes(shown, place, ({ item }) => placed(item.inside ? spot(item) : text(item), item.node.bounds)));
    return element;
  }

  function text({ node, covered }) {
    const kind = `words${node.bounds.top < 100 && !covered ? " head" : ""}${node.bounds.left === 0 && !covered ? " edge" : ""}`;
    return h("span", { class: kind, "aria-hidden": covered }, node.text);
  }

  function spot({ node, inside }) {
    const kind = node.className.split(".").at(-1);
    const said = node.text ?? node.contentDescription;
    const toggles = typeof node.checked === "boolean" && node.checkable !== false;
    const button = h("button", {
      type: "button",
      class: `spot ${kind}${node.focused ? " focused" : ""}${node.selected ? " selected" : ""}`,
      "aria-label": said ?? (inside.join(", ") || t("Unnamed")),
      "aria-disabled": node.enabled === false ? "true" : null,
      ...(toggles ? { role: "switch", "aria-checked": `${node.checked}` } : {}),
    }, kind === "LinearLayout" ? null : h("span", {}, toggles ? (node.checked ? t("On") : t("Off")) : said ?? ""));
    button.addEventListener("click", (event) => {
      if (event.detail === 0) touch({ kind: "tap", ...middle(node.bounds) }); // a click by the keyboard
    });
    return button;
  }

  function placed(element, { left, top, right, bottom }) {
    element.style.left = `${(100 * left) / size.width}%`;
    element.style.top = `${(100 * top) / size.height}%`;
    element.style.width = `${(100 * (right - left)) / size.width}%`;
    element.style.height = `${(100 * (bottom - top)) / size.height}%`;
    return element;
  }

  // --- touch

  watchTouches(glass, () => size, touch);

  function touch(finger) {
    return send("/touch", finger);
  }

  async function send(path, what) {
    try {
      await phone("POST", path, what, signal);
      problem.hidden = true;
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  }

  typing.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await touch({ kind: "type", text: words.value })) words.value = "";
  });
  master.addEventListener("change", async () => {
    if (!(await send("/toggle", { on: master.checked }))) master.checked = !master.checked;
  });

  // --- messages

  function hear({ talk: said = [], awaits }) {
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    const rows = spoken.nodes(said, ({ id }) => id, ({ item }) => line(item));
    said.forEach(({ text }, place) => answers.get(rows[place])?.draw(rows[place], text.trim()));
    put(hint, awaits ? t("The agent is at work…") : said.length ? "" : t("Ask the agent something, as from a phone in your hand."));
    reconcile(lines, [...rows, hint]);
    if (atEnd) lines.scrollTop = lines.scrollHeight;
  }

  function line({ kind, text }) {
    if (kind !== "agent") return h("p", { class: kind, dir: "auto" }, text.trim());
    const answer = h("div", { class: "prose", dir: "auto" }); // its text grows
    answers.set(answer, new Prose());
    return answer;
  }

  saying.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (word.value.trim() && (await send("/say", { text: word.value, aloud: aloud.checked }))) word.value = "";
  });

  // --- confirmations

  function ask(question) {
    const answer = (allow, remember) => () => send("/answer", { question: question.id, allow, remember });
    const yes = [[t("Allow"), false], [t("Allow, and do not ask again"), true]].map(([title, remember]) =>
      h("button", { type: "button", class: remember ? null : "main", disabled: true, onclick: answer(true, remember) }, title));
    setTimeout(() => { for (const each of yes) each.disabled = false; }, MEANT);
    return h("div", { class: "question", role: "alert" },
      h("strong", {}, ASKS[question.path] ?? (question.verb ? t("Press “{name}”?", { name: question.verb }) : t("Allow this?"))),
      h("pre", { tabindex: "0" }, question.text),
      ticking(h("p", { class: "sub" }), countingDown(question.id)),
      h("div", { class: "actions" },
        yes, h("button", { type: "button", onclick: answer(false, false) }, t("Deny"))));
  }

  function countingDown(id) {
    const end = performance.now() / 1000 + (state.seconds_left[id] ?? 0);
    return (each) => put(each, t("No answer within {count} s means no.", { count: Math.max(0, Math.ceil(end - performance.now() / 1000)) }));
  }

  function fail(error) {
    if (signal.aborted) return;
    problem.replaceChildren(h("span", {}, error.message));
    problem.hidden = false;
  }

  return { close: () => closing.abort() };
}

/** Return the window number of a node id such as `w0:17`; the topmost window is 0. */
function windowOf(node) {
  return /^w(\d+):/.exec(node.nodeId)?.[1] ?? "0";
}

function holds(outer, inner) {
  return outer.left <= inner.left && outer.top <= inner.top && outer.right >= inner.right && outer.bottom >= inner.bottom;
}

function middle({ left, top, right, bottom }) {
  return { x: Math.round((left + right) / 2), y: Math.round((top + bottom) / 2) };
}

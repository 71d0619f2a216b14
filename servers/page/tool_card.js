// Display of a tool call: its arguments and result, folded, and the approval request for it.

import { h, icon, put, ticking } from "./dom.js";
import { countdown, now, seconds } from "./format.js";
import { t } from "./i18n.js";
import { mediaCard } from "./media_card.js";

const RESULT = 4000; // characters of a result that are shown
const SIGNS = { waiting: "hourglass", running: "tool", done: "check", failed: "cross" };
const ASKING = /^phone_(call|send_sms|send_mms|share_media)$/; // for these the phone asks its user
const WORDS = { waiting: t("waits"), running: t("running"), done: t("done"), failed: t("failed") };
const ANSWERED = { once: t("Allowed."), session: t("Allowed in this chat."), deny: t("Denied.") };
const SHOWN = /^MEDIA:(svc-relay:\/\/\S+)$/m; // the picture of a result

/** A tool call, folded. */
export class ToolCard {
  #state = "";
  #sign = h("span", { class: "sign" });
  #word = h("span", { class: "word" });
  #words = WORDS;
  #ask = h("div", { hidden: true });
  #result = h("pre", { tabindex: "0", hidden: true });
  #began = now();
  #picture = null;

  constructor(name, args) {
    const phone = typeof args?.device === "string" && args.device ? args.device : t("the phone");
    this.#words = ASKING.test(name) ? { ...WORDS, running: t("waiting for a yes on {phone},", { phone }) } : WORDS;
    const given = args && typeof args === "object" && Object.keys(args).length ? JSON.stringify(args, null, 2) : "";
    this.element = h("div", { class: "tool" },
      h("details", {},
        h("summary", {}, this.#sign, h("code", {}, name), h("span", { class: "brief" }, brief(args)), this.#word),
        given ? h("pre", { tabindex: "0" }, given) : null, this.#result),
      this.#ask);
  }

  show(state, result, seconds) {
    this.#state = state;
    this.element.dataset.state = state;
    this.#sign.replaceChildren(icon(SIGNS[state]));
    this.#ask.hidden = state !== "waiting" || !this.#ask.childElementCount;
    if (state === "running" || state === "waiting") {
      ticking(this.#word, (each) => {
        if (this.#state === state) each.textContent = `${this.#words[state]} ${Math.max(0, Math.round(now() - this.#began))} s`;
      });
    } else this.#word.textContent = typeof seconds === "number" && seconds >= 0.1 ? t("{state} in {seconds} s", { state: WORDS[state], seconds: seconds.toFixed(1) }) : WORDS[state];
    if (result) this.#say(result);
  }

  ask(question) {
    this.#ask.replaceChildren(question);
    this.#ask.hidden = this.#state !== "waiting";
  }

  abandon() {
    if (this.#state === "running" || this.#state === "waiting") this.show("failed", t("It was interrupted."));
  }

  #say(said) {
    const picture = SHOWN.exec(said)?.[1];
    if (picture && !this.#picture) this.#result.after((this.#picture = mediaCard(picture)));
    this.#result.textContent = said.length > RESULT ? `${said.slice(0, RESULT)}…` : said;
    this.#result.hidden = false;
  }
}

/** Build an approval request: the whole command, and buttons for this call alone or for all like it in this chat. */
export function questionOf(question, answer) {
  const choose = (choice) => () => {
    const said = h("span", { role: "status" }, ANSWERED[choice]);
    element.replaceChildren(said);
    answer(question.call_id, choice).catch((error) => { said.textContent = error.message; });
  };
  const end = seconds(question.expires_at);
  const left = ticking(h("span", { class: "sub" }), (each) => {
    const rest = (end ?? Infinity) - now();
    put(each, end === null ? "" : rest > 0 ? t("No answer within {time} means no.", { time: countdown(rest) }) : t("The time for an answer is over."));
  });
  const covers = question.choices?.includes("session") ? question.pattern_key : "";
  const element = h("div", { class: "ask", role: "group", "aria-label": t("Question of the agent") },
    h("span", {}, question.description || t("Allow this call?")), h("code", {}, question.command),
    h("button", { type: "button", class: "main", onclick: choose("once") }, t("Allow once")),
    covers ? h("button", { type: "button", onclick: choose("session") }, t("Allow in this chat")) : null,
    h("button", { type: "button", onclick: choose("deny") }, t("Deny")),
    covers ? h("span", { class: "sub" }, `${t("In this chat it covers all calls of:")} `, h("code", {}, covers)) : h("span", { class: "sub" }, t("It covers this one call.")), end === null ? null : left);
  return element;
}

function brief(args) {
  if (!args || typeof args !== "object") return "";
  return Object.values(args).filter((each) => typeof each !== "object").join(" ").slice(0, 80);
}

// Push: it is not wired, and says so.

import { h, icon } from "./dom.js";
import { text } from "./format.js";
import { relay } from "./net.js";
import { dataView } from "./view.js";

export function openPush(room) {
  const facts = h("dl", { class: "plain-facts" });
  const content = h("div", { class: "notice" }, icon("bell"),
    h("h3", {}, "Push delivery is not configured"),
    h("p", {}, "Phones hear of new things over their own connection to the relay. Nothing is sent through a push service."),
    facts,
    h("div", { class: "actions" }, h("button", { type: "button", disabled: true }, "Compose"), h("button", { type: "button", disabled: true }, "Send test")));
  return dataView(room, {
    every: Infinity,
    auto: false,
    content,
    load: (signal) => relay("GET", "/push", undefined, signal),
    render: (data) => {
      facts.replaceChildren(h("dt", {}, "Configured"), h("dd", {}, h("code", {}, `${data.configured}`)), h("dt", {}, "Reason"), h("dd", {}, text(data.reason)));
    },
  });
}

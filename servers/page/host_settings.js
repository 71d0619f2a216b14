// Settings that only the host has: no route changes them, so the page names the command or the variable.

import { copyButton, h } from "./dom.js";
import { t } from "./i18n.js";

const ROWS = [
  [t("New API key for this host"), "svc key rotate"],
  [t("Key of the model's server"), "svc model --ask-key"],
  [t("Public address, offered in each pairing code"), "SVC_PUBLIC_URL=https://home.example/relay"],
  [t("Names that the app expects"), "SVC_BRAND=hermes"],
  [t("Token for programs that read /metrics from elsewhere"), "SVC_METRICS_TOKEN="],
  [t("Password of this dashboard"), "SVC_DASHBOARD_PASSWORD="],
];

/** Build the block of Settings. */
export function hostBlock() {
  return h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("On the host"))),
    h("div", { class: "settings" }, h("p", { class: "sub" }, t("Run the commands on the host. Variables are set in ~/.svc/.env and count from the next start on.")),
      h("ul", { class: "news" }, ROWS.map(([title, command]) => h("li", {}, title, h("div", { class: "host-row" }, h("code", {}, command),
        copyButton(command, "", { "aria-label": t("Copy {name}", { name: command }), title: t("Copy") })))))));
}

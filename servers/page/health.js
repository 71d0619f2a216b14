// Health of this host: the checks of `svc doctor` that found something, each with its remedy.

import { h, put, ticking } from "./dom.js";
import { ago, moment, text } from "./format.js";
import { t } from "./i18n.js";
import { health } from "./net.js";
import { badge, row, table } from "./view.js";

const HEALTH_COLUMNS = [t("Check"), t("Found"), t("What to do")];
const KINDS = { error: "bad", warning: "warn", note: "plain" };
const NAMES = { error: t("Error"), warning: t("Warning"), note: t("Note") };
const CHECK_PATIENCE = 1500; // ms that the other parts of the tab wait for the checks

/** Read the health of the host; `changed` is called when checks that took longer have ended. */
export function hostHealth(changed) {
  let known = { checks: [] };
  let asked = null;
  const list = table(t("Health"), HEALTH_COLUMNS);
  const count = h("span", { class: "count" });
  const date = (each) => put(each, known.checked_at ? t("checked {when}", { when: ago(known.checked_at) }) : known.problem ?? t("being checked"), moment(known.checked_at) ?? "");
  const since = ticking(h("span", { class: "sub" }), date);
  const element = h("section", { class: "block" }, h("div", { class: "heading" }, h("h3", {}, t("Health"), count), since), list.element);

  async function load() {
    let late = false;
    asked ??= health().then(
      (found) => { known = found; },
      (error) => { known = { ...known, problem: error.message }; },
    ).finally(() => {
      asked = null;
      if (late) changed();
    });
    await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, CHECK_PATIENCE))]);
    late = asked !== null;
  }

  /** Return the block; null while there is nothing to report. */
  function render() {
    const found = known.checks.filter((each) => each.found !== null);
    count.textContent = found.length ? ` ${t("{count} of {all}", { count: found.length, all: known.checks.length })}` : "";
    list.body.replaceChildren(...found.map(checkRow));
    date(since);
    return found.length ? element : null;
  }

  /** Return the check of the model that fails, or undefined. */
  const modelProblem = () => known.checks.find((each) => each.code.startsWith("model_") && !each.ok && each.severity === "error");

  return { load, render, modelProblem };
}

function checkRow(check) {
  return row(HEALTH_COLUMNS, [
    h("div", {}, h("strong", { class: "name" }, text(check.title)), badge(KINDS[check.severity] ?? "plain", NAMES[check.severity] ?? text(check.severity)), h("div", { class: "sub" }, h("code", {}, text(check.code)))),
    text(check.found),
    text(check.remedy),
  ]);
}

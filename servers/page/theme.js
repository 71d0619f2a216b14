// The theme of the page: that of the system, light or dark.

import { h, icon } from "./dom.js";
import { t } from "./i18n.js";

const KEY = "svc-relay-theme";

/** Themes with their titles and icons. */
export const THEMES = [["system", t("As the system"), "auto"], ["light", t("Light"), "sun"], ["dark", t("Dark"), "moon"]];
let chosen = storedTheme();
const watchers = new Set();

function storedTheme() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}

/** Return the name of the chosen theme. */
export const theme = () => chosen;

/** Choose a theme by its name. */
export function setTheme(name) {
  chosen = name;
  try {
    localStorage.setItem(KEY, name);
  } catch { /* private window: the setting is lost with the page */ }
  paintTheme();
}

/** Apply the chosen theme. */
export function paintTheme() {
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", chosen);
  for (const each of watchers) each();
}

/** Build the button that chooses the next theme. */
export function themeButton() {
  const button = h("button", { class: "round", type: "button" });
  const place = () => Math.max(0, THEMES.findIndex(([each]) => each === chosen));
  watchers.add(() => {
    const [, name, picture] = THEMES[place()];
    button.replaceChildren(icon(picture));
    button.setAttribute("aria-label", t("Theme: {name}", { name }));
    button.title = t("Theme: {name}", { name });
  });
  button.addEventListener("click", () => setTheme(THEMES[(place() + 1) % THEMES.length][0]));
  return button;
}

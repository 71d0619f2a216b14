// Texts in the user's language: `t("Revoke {name}", { name })`. The English text is the key, so English has no file.

/** Languages of the page, by their own names. Each but English has a file `messages-CODE.js`. */
export const LANGUAGES = [["en", "English"]];
const KEY = "svc-relay-language";

/** Return the language that the user has set; empty: that of the browser. */
export function languageSetting() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Store the language; it applies from the next load of the page on. */
export function setLanguage(code) {
  try {
    if (code) localStorage.setItem(KEY, code);
    else localStorage.removeItem(KEY);
  } catch { /* private window: the setting is lost with the page */ }
}

/** Language of this page, such as `de`. */
export const language = [languageSetting(), ...navigator.languages]
  .map((tag) => tag.toLowerCase().split("-")[0])
  .find((code) => LANGUAGES.some(([each]) => each === code)) ?? "en";

document.documentElement.lang = language;
const messages = language === "en" ? {} : await import(`./messages-${language}.js`).then((file) => file.default, () => ({}));

/** Return a text in the user's language. `{name}` stands for a value; the first argument must be a literal. */
export function t(text, values = {}) {
  return (messages[text] ?? text).replace(/\{(\w+)\}/g, (all, name) => `${values[name] ?? all}`);
}

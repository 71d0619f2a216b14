// Texts in the user's language: `t("Revoke {name}", { name })`. The English text is the key, so English has no file.

/** Languages of the page, by their own names. Each but English has a file `messages/CODE.json`; only the one in use is loaded. */
export const LANGUAGES = [["en", "English"], ["de", "Deutsch"], ["es", "Español"], ["fr", "Français"], ["zh", "中文"]];
const COOKIE = "svc-relay-language"; // the servers read it for their own pages, such as that of the sign-in
const YEAR = 31_536_000; // s

/** Return the language that the user has set; empty: that of the browser. */
export function languageSetting() {
  return document.cookie.match(/(?:^|; )svc-relay-language=(\w+)/)?.[1] ?? "";
}

/** Store the language; it applies from the next load of the page on. */
export function setLanguage(code) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${COOKIE}=${code}; Path=/; Max-Age=${code ? YEAR : 0}; SameSite=Lax${secure}`;
}

/** Move the setting of an earlier version, which kept it in the storage of the browser, to the cookie. */
function moveSetting() {
  try {
    const stored = localStorage.getItem(COOKIE);
    if (stored === null) return;
    if (!languageSetting() && LANGUAGES.some(([code]) => code === stored)) setLanguage(stored);
    localStorage.removeItem(COOKIE);
  } catch { /* private window: nothing is stored */ }
}

moveSetting();
if (languageSetting()) setLanguage(languageSetting()); // prolongs it: some browsers keep it for a week only
const codeOf = (tag) => tag.toLowerCase().split("-")[0];
const preferred = [languageSetting(), ...navigator.languages];

/** Language of this page, such as `de`. */
export const language = preferred.map(codeOf).find((code) => LANGUAGES.some(([each]) => each === code)) ?? "en";

/** Format of dates and numbers: the browser's variant of the language, such as `de-AT`. */
export const locale = navigator.languages.find((tag) => codeOf(tag) === language) ?? language;

document.documentElement.lang = language;
const messages = await load();

/** Load the messages. A page that cannot load them is in English. */
async function load() {
  if (language === "en") return {};
  try {
    return await (await fetch(new URL(`messages/${language}.json`, import.meta.url))).json();
  } catch {
    document.documentElement.lang = "en";
    return {};
  }
}

/** Return a text in the user's language. `{name}` stands for a value; the first argument must be a literal. */
export function t(text, values = {}) {
  return (messages[text] ?? text).replace(/\{(\w+)\}/g, (all, name) => `${values[name] ?? all}`);
}

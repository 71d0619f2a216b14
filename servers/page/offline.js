// Registration of the service worker, which keeps the page's own files.

const FILE = "sw.js";
const policy = globalThis.trustedTypes?.createPolicy("svc-relay-worker", { createScriptURL: () => FILE }); // once for a page

/** Register the service worker. Browsers have none on plain HTTP from another host. */
export async function keepPage() {
  if (!("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register(policy ? policy.createScriptURL("") : FILE);
}

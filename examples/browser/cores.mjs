// A relay and a phone under Pyodide, called from JavaScript: the same file in a page and under Node.
//
//   node examples/browser/cores.mjs FOLDER…      folders with pyodide's `node_modules`, this tree and attrs, h11, h2, wsproto
//
// In a page: `import { open } from "./cores.mjs"`, see index.html.

/** Load the cores. `pyodide` is a loaded Pyodide whose `sys.path` has this project and its four packages. */
export function open(pyodide) {
  const memory = pyodide.pyimport("examples.in_memory").InMemory();
  return {
    token: memory.token,
    /** Return the status and JSON of the relay's response. */
    call(method, path) {
      const [status, ...body] = memory.call(method, path).split(" ");
      return { status: Number(status), body: JSON.parse(body.join(" ")) };
    },
  };
}

async function main(modules, ...folders) {
  const { loadPyodide } = await import(`${modules}/pyodide/pyodide.mjs`);
  const pyodide = await loadPyodide();
  for (const [number, folder] of folders.entries()) {
    pyodide.mountNodeFS(`/lib/own${number}`, folder);
    pyodide.runPython(`import sys; sys.path.append("/lib/own${number}")`);
  }
  const cores = open(pyodide);
  for (const path of ["/ping", "/current_app", "/screen"]) {
    const { status, body } = cores.call("GET", path);
    console.log(path, status, Object.keys(body).join(" "));
  }
}

if (globalThis.process?.argv[1]?.endsWith("cores.mjs")) {
  await main(...globalThis.process.argv.slice(2));
}

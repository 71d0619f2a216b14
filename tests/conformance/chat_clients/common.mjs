// Runner for the steps of a JavaScript client, and what the steps have in common; `steps.py` is the same for Python.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const PROMPTS = {
  plain: "Say hello",
  stream: "Say hello, and think first",
  tools: "Weather in Rome and Oslo?",
  structured: "Describe Rome as data",
  image: "Count the pictures",
  "first turn": "My name is Ada",
  "second turn": "Repeat my first message",
  refused: "Fail",
  "own tools": "Remember that I like tea",
  cancel: "Count slowly",
};
export const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
export const CITY = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
export const PLACE = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"],
  additionalProperties: false,
};
const CANCELLED_WITHIN = 2000; // ms

/** Import a package from the folder of the suite. */
export async function load(name) {
  const require = createRequire(pathToFileURL(`${process.env.PACKAGES}/x.cjs`));
  return import(pathToFileURL(require.resolve(name)));
}

/** Return the text of a stream, and whether the text came in more than one piece. */
export async function collect(stream, pick) {
  const found = [];
  for await (const event of stream) {
    const piece = pick(event);
    if (piece) found.push(piece);
  }
  return [found.join(""), found.length > 1];
}

/** Return the status of the error with which a promise is rejected. */
export async function statusOf(promise) {
  try {
    await promise;
    return "no error";
  } catch (problem) {
    return problem.status ?? problem.statusCode ?? problem.lastError?.statusCode ?? `${problem}`;
  }
}

/** Report whether the model's request ends soon after the client has closed its stream. */
export async function isCancelled(instructions) {
  const until = Date.now() + CANCELLED_WITHIN;
  while (Date.now() < until) {
    if ((await (await fetch(instructions.model)).json()).open === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

/** Run the steps that `make` returns for the instructions, and print what each has returned or thrown; see `steps.py`. */
export async function runSteps(make) {
  const seen = {};
  for (const [name, step] of Object.entries(await make(JSON.parse(process.argv[2])))) {
    console.error(name);
    try {
      seen[name] = await step();
    } catch (problem) {
      seen[name] = `${problem?.name}: ${problem?.message} ${problem?.cause ?? ""}`.slice(0, 500);
    }
  }
  process.stdout.write(JSON.stringify(seen), () => process.exit(0)); // connections may be kept open
}

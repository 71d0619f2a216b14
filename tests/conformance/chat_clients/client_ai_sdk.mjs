// The AI SDK of Vercel: `openai()` on both routes. With `compatible` as argument: `createOpenAICompatible`.
import { PICTURE, PROMPTS, collect, isCancelled, load, runSteps, statusOf } from "./common.mjs";

const { generateText, streamText, stepCountIs, tool, Output } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { z } = await load("zod");

function modelOf({ url, route }, apiKey) {
  if (process.argv[3] === "compatible") {
    const more = { name: "svc", includeUsage: true, supportsStructuredOutputs: true };
    return createOpenAICompatible({ baseURL: url, apiKey, ...more })("svc-agent");
  }
  const provider = createOpenAI({ baseURL: url, apiKey });
  return route === "completions" ? provider.chat("svc-agent") : provider.responses("svc-agent");
}

await runSteps((instructions) => {
  const model = modelOf(instructions, instructions.key);
  const base = { model, maxRetries: 0 };
  const weather = tool({
    description: "Weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async () => "sunny",
  });
  const tools = { get_weather: weather };
  const quiet = { onError: () => {} };
  const text = async (prompt) => (await generateText({ ...base, prompt })).text;
  const withTools = { ...base, prompt: PROMPTS.tools, tools, stopWhen: stepCountIs(3) };
  return {
    plain: () => text(PROMPTS.plain),
    stream: () => collect(streamText({ ...base, ...quiet, prompt: PROMPTS.stream }).textStream, (piece) => piece),
    tools: async () => (await generateText(withTools)).text,
    "streamed tools": async () => {
      const result = streamText({ ...withTools, ...quiet });
      await result.consumeStream();
      return result.text;
    },
    structured: async () => {
      const output = Output.object({ schema: z.object({ city: z.string(), degrees: z.number().int() }) });
      return (await generateText({ ...base, prompt: PROMPTS.structured, output })).output;
    },
    image: async () => {
      const content = [
        { type: "text", text: PROMPTS.image },
        { type: "image", image: PICTURE, mediaType: "image/png" },
      ];
      return (await generateText({ ...base, messages: [{ role: "user", content }] })).text;
    },
    usage: async () => {
      const whole = (await generateText({ ...base, prompt: PROMPTS.plain })).usage;
      const streamed = streamText({ ...base, ...quiet, prompt: PROMPTS.plain });
      await streamed.consumeStream();
      return [whole, await streamed.usage].map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens]);
    },
    "second turn": async () => {
      const messages = [{ role: "user", content: PROMPTS["first turn"] }];
      const first = await generateText({ ...base, messages });
      messages.push(...first.response.messages, { role: "user", content: PROMPTS["second turn"] });
      return (await generateText({ ...base, messages })).text;
    },
    "wrong key": () =>
      statusOf(generateText({ model: modelOf(instructions, "wrong"), maxRetries: 0, prompt: "x" })),
    refused: () => text(PROMPTS.refused),
    "refused stream": async () => {
      const problems = [];
      const onError = ({ error }) => problems.push(`${error?.message ?? JSON.stringify(error)}`);
      await streamText({ ...base, onError, prompt: PROMPTS.refused }).consumeStream();
      return problems.join();
    },
    "own tools": () => text(PROMPTS["own tools"]),
    cancel: async () => {
      const abort = new AbortController();
      const result = streamText({ ...base, ...quiet, prompt: PROMPTS.cancel, abortSignal: abort.signal });
      for await (const _ of result.textStream) {
        abort.abort();
        break;
      }
      return isCancelled(instructions);
    },
  };
});

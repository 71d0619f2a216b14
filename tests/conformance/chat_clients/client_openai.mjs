// The `openai` package for JavaScript.
import { CITY, PICTURE, PLACE, PROMPTS, collect, isCancelled, load, runSteps, statusOf } from "./common.mjs";

const { default: OpenAI } = await load("openai");
const model = "svc-agent";
const FUNCTION = { name: "get_weather", description: "Weather of a city", parameters: CITY, strict: true };
const DATA = `data:image/png;base64,${PICTURE}`;
const user = (content) => [{ role: "user", content }];

function completionSteps(instructions, client, unauthorized) {
  const { completions } = client.chat;
  const tools = [{ type: "function", function: FUNCTION }];
  const create = (messages, more) => completions.create({ model, messages, ...more });
  const text = async (messages, more) => (await create(messages, more)).choices[0].message.content;
  const useTools = async (ask) => {
    const rows = user(PROMPTS.tools);
    const message = (await ask(rows)).choices[0].message;
    rows.push(message, ...message.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "sunny" })));
    return (await ask(rows)).choices[0].message.content;
  };
  return {
    plain: () => text(user(PROMPTS.plain)),
    stream: async () =>
      collect(await create(user(PROMPTS.stream), { stream: true }), (chunk) => chunk.choices[0]?.delta.content),
    tools: () => useTools((messages) => create(messages, { tools })),
    "streamed tools": () =>
      useTools((messages) => completions.stream({ model, messages, tools }).finalChatCompletion()),
    structured: async () => {
      const json_schema = { name: "place", schema: PLACE, strict: true };
      const wanted = { model, messages: user(PROMPTS.structured), response_format: { type: "json_schema", json_schema } };
      return (await completions.parse(wanted)).choices[0].message.parsed;
    },
    image: () =>
      text(user([{ type: "text", text: PROMPTS.image }, { type: "image_url", image_url: { url: DATA } }])),
    usage: async () => {
      const whole = await create(user(PROMPTS.plain));
      const chunks = [];
      const wanted = { stream: true, stream_options: { include_usage: true } };
      for await (const chunk of await create(user(PROMPTS.plain), wanted)) chunks.push(chunk);
      return [whole, chunks.at(-1)].map(({ usage }) => [usage.prompt_tokens, usage.completion_tokens]);
    },
    "second turn": async () => {
      const rows = user(PROMPTS["first turn"]);
      rows.push((await create(rows)).choices[0].message, ...user(PROMPTS["second turn"]));
      return text(rows);
    },
    "wrong key": () => statusOf(unauthorized.models.list()),
    "unknown model": () => statusOf(client.models.retrieve("gpt-5")),
    refused: () => text(user(PROMPTS.refused)),
    "refused stream": async () => collect(await create(user(PROMPTS.refused), { stream: true }), (chunk) => JSON.stringify(chunk)),
    "own tools": () => text(user(PROMPTS["own tools"])),
    cancel: async () => {
      for await (const _ of await create(user(PROMPTS.cancel), { stream: true })) break;
      return isCancelled(instructions);
    },
  };
}

function responseSteps(instructions, client, unauthorized) {
  const { responses } = client;
  const tools = [{ type: "function", ...FUNCTION }];
  const create = (input, more) => responses.create({ model, input, ...more });
  const text = async (input, more) => (await create(input, more)).output_text;
  const results = ({ output }) =>
    output
      .filter(({ type }) => type === "function_call")
      .map(({ call_id }) => ({ type: "function_call_output", call_id, output: "sunny" }));
  return {
    plain: () => text(PROMPTS.plain),
    stream: async () =>
      collect(await create(PROMPTS.stream, { stream: true }), ({ type, delta }) =>
        type === "response.output_text.delta" ? delta : "",
      ),
    tools: async () => {
      const first = await create(PROMPTS.tools, { tools });
      return text([...user(PROMPTS.tools), ...first.output, ...results(first)], { tools });
    },
    "streamed tools": async () => {
      const first = await responses.stream({ model, input: PROMPTS.tools, tools }).finalResponse();
      const more = { model, tools, input: results(first), previous_response_id: first.id };
      return (await responses.stream(more).finalResponse()).output_text;
    },
    structured: async () => {
      const format = { type: "json_schema", name: "place", schema: PLACE, strict: true };
      return (await responses.parse({ model, input: PROMPTS.structured, text: { format } })).output_parsed;
    },
    image: () =>
      text(user([{ type: "input_text", text: PROMPTS.image }, { type: "input_image", image_url: DATA, detail: "auto" }])),
    usage: async () => {
      const whole = await create(PROMPTS.plain);
      const events = [];
      for await (const event of await create(PROMPTS.plain, { stream: true })) events.push(event);
      return [whole, events.at(-1).response].map(({ usage }) => [usage.input_tokens, usage.output_tokens]);
    },
    "second turn": async () => {
      const first = await create(PROMPTS["first turn"]);
      return text(PROMPTS["second turn"], { previous_response_id: first.id });
    },
    "wrong key": () => statusOf(unauthorized.responses.create({ model, input: "x" })),
    "unknown model": () => statusOf(client.models.retrieve("gpt-5")),
    refused: () => text(PROMPTS.refused),
    "refused stream": async () => collect(await create(PROMPTS.refused, { stream: true }), (event) => JSON.stringify(event)),
    "own tools": () => text(PROMPTS["own tools"]),
    cancel: async () => {
      for await (const { type } of await create(PROMPTS.cancel, { stream: true })) {
        if (type === "response.output_text.delta") break;
      }
      return isCancelled(instructions);
    },
  };
}

await runSteps((instructions) => {
  const client = (apiKey) => new OpenAI({ baseURL: instructions.url, apiKey, maxRetries: 0 });
  const make = instructions.route === "completions" ? completionSteps : responseSteps;
  return make(instructions, client(instructions.key), client("wrong"));
});

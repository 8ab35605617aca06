// The official `openai` package through the proxy; it sets only `baseURL`.
import OpenAI from "openai";
import { ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, assert, collect, expectError, report } from "./common.mjs";

const newClient = (upstream, options = {}, version = "v1") =>
  new OpenAI({ baseURL: `${PROXY}/${upstream}/${version}`, apiKey: "sk-proxied", maxRetries: 0, ...options });
const client = newClient("openai");
const messages = [{ role: "user", content: PROMPT }];
const tools = [{ type: "function", function: { name: "look_up", parameters: { type: "object", properties: {} } } }];
const chat = (client, model = "gpt-4o", more = {}) =>
  client.chat.completions.create({ model, messages, ...more });

const completion = await chat(client, "gpt-4o", { tools, tool_choice: "auto" });
assert.ok(completion.choices[0].message.content && completion.usage.completion_tokens > 0);
report("plain");

const more = { stream: true, tools, stream_options: { include_usage: true } };
const chunks = await collect(await chat(client, "gpt-4o", more));
assert.ok(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length > 1);
assert.ok(chunks.at(-1).usage.completion_tokens > 0);
report("stream");

const response = await client.responses.create({ model: "gpt-4o", input: PROMPT });
const events = await collect(await client.responses.create({ model: "gpt-4o", input: PROMPT, stream: true }));
assert.ok(response.output_text && events.at(-1).type === "response.completed");
report("responses");

const must = { name: "look_up", parameters: SCHEMA, strict: true };
const usages = [];
{
  const forced = { model: "tools", tools: [{ type: "function", function: must }] };
  const plain = await client.chat.completions.create({ messages, tool_choice: "required", ...forced });
  const helper = client.chat.completions.stream({
    messages,
    tool_choice: { type: "function", function: { name: "look_up" } },
    stream_options: { include_usage: true },
    ...forced,
  });
  const pieces = [];
  helper.on("tool_calls.function.arguments.delta", (event) => pieces.push(event.arguments_delta));
  const streamed = await helper.finalChatCompletion();
  assert.ok(pieces.filter((piece) => piece).length > 1);
  assert.deepEqual(JSON.parse(pieces.join("")), ARGUMENTS);
  for (const response of [plain, streamed]) {
    const { finish_reason, message } = response.choices[0];
    const [call] = message.tool_calls;
    assert.deepEqual([finish_reason, message.content, message.tool_calls.length], ["tool_calls", null, 1]);
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["look_up", ARGUMENTS]);
    const conversation = [...messages, message, { role: "tool", tool_call_id: call.id, content: RESULT }];
    const last = await client.chat.completions.create({ messages: conversation, ...forced });
    assert.ok(last.choices[0].message.content && !last.choices[0].message.tool_calls);
    for (const { usage } of [response, last]) usages.push([usage.prompt_tokens, usage.completion_tokens]);
  }
}
{
  const forced = { model: "tools", tools: [{ type: "function", ...must }] };
  const plain = await client.responses.create({ input: PROMPT, tool_choice: "required", ...forced });
  const named = { type: "function", name: "look_up" };
  const helper = client.responses.stream({ input: PROMPT, tool_choice: named, ...forced });
  const pieces = [];
  helper.on("response.function_call_arguments.delta", (event) => pieces.push(event.delta));
  const streamed = await helper.finalResponse();
  assert.ok(pieces.length > 1);
  assert.deepEqual(JSON.parse(pieces.join("")), ARGUMENTS);
  for (const response of [plain, streamed]) {
    const [call] = response.output;
    assert.deepEqual([call.name, JSON.parse(call.arguments)], ["look_up", ARGUMENTS]);
    const result = { type: "function_call_output", call_id: call.call_id, output: RESULT };
    const conversation = [{ role: "user", content: PROMPT }, call, result];
    const last = await client.responses.create({ input: conversation, ...forced });
    assert.ok(last.output_text);
    for (const { usage } of [response, last]) usages.push([usage.input_tokens, usage.output_tokens]);
  }
}
report("tools", usages);

const vectors = await client.embeddings.create({ model: "text-embedding-3-small", input: ["one", "two"], dimensions: 4 });
assert.deepEqual(vectors.data.map((item) => item.embedding), [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]);
report("embeddings");

await chat(client, "limited");
const refusal = await expectError(OpenAI.RateLimitError, () => chat(client, "limited"));
assert.deepEqual([refusal.code, refusal.type], ["rate_limit_exceeded", "requests"]);
assert.ok(Number(refusal.headers.get("retry-after")) > 60);
report("refused");

const patient = newClient("openai", { maxRetries: 1 });
for (let n = 0; n < 3; n++) await chat(patient, "paced");
report("retried");

await expectError(OpenAI.NotFoundError, () => chat(newClient("openai", {}, "v0")));
const missing = await expectError(OpenAI.NotFoundError, () => chat(newClient("opnai")));
assert.match(missing.message, /names no upstream/);
const denied = await expectError(OpenAI.AuthenticationError, () => chat(newClient("denied")));
assert.equal(denied.code, "invalid_api_key");
const broken = await expectError(OpenAI.InternalServerError, () => chat(newClient("unreachable")));
assert.deepEqual([broken.status, broken.code], [502, "upstream_unreachable"]);
report("errors");

await expectError(OpenAI.APIConnectionTimeoutError, () => chat(newClient("slow", { timeout: 300 })));
report("timeout");

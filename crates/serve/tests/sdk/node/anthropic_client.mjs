// The official `@anthropic-ai/sdk` package through the proxy; it sets only `baseURL`.
import Anthropic from "@anthropic-ai/sdk";
import { ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, assert, collect, expectError, report } from "./common.mjs";

const newClient = (upstream, options = {}) =>
  new Anthropic({ baseURL: `${PROXY}/${upstream}`, apiKey: "sk-proxied", maxRetries: 0, ...options });
const client = newClient("anthropic");
const request = { model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: PROMPT }] };
const tools = [{ name: "look_up", input_schema: { type: "object", properties: {} } }];
const ask = (client, more = {}) => client.messages.create({ ...request, ...more });

const response = await ask(client, { tools });
assert.ok(response.content[0].text && response.usage.output_tokens > 0);
report("plain");

const events = await collect(await ask(client, { stream: true }));
assert.deepEqual([events[0].type, events.at(-1).type], ["message_start", "message_stop"]);
const helper = client.messages.stream({ ...request, tools });
const pieces = [];
helper.on("text", (text) => pieces.push(text));
assert.equal((await helper.finalMessage()).content[0].text, pieces.join(""));
report("stream");

const { model, messages } = request;
const forced = { model: "tools", max_tokens: 100, tools: [{ name: "look_up", input_schema: SCHEMA }] };
const calling = client.messages.stream({ messages, tool_choice: { type: "tool", name: "look_up" }, ...forced });
const parts = [];
calling.on("inputJson", (part) => parts.push(part));
const streamed = await calling.finalMessage();
assert.ok(parts.filter((part) => part).length > 1);
assert.deepEqual(JSON.parse(parts.join("")), ARGUMENTS);
const plain = await client.messages.create({ messages, tool_choice: { type: "any" }, ...forced });
const usages = [];
for (const response of [plain, streamed]) {
  const [call] = response.content;
  assert.deepEqual([response.stop_reason, call.type, response.content.length], ["tool_use", "tool_use", 1]);
  assert.deepEqual([call.name, call.input], ["look_up", ARGUMENTS]);
  const result = { type: "tool_result", tool_use_id: call.id, content: RESULT };
  const conversation = [{ role: "assistant", content: response.content }, { role: "user", content: [result] }];
  const last = await client.messages.create({ messages: [...messages, ...conversation], ...forced });
  assert.ok(last.stop_reason === "end_turn" && last.content[0].text);
  for (const { usage } of [response, last]) usages.push([usage.input_tokens, usage.output_tokens]);
}
report("tools", usages);

assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
report("count");

await ask(client, { model: "limited" });
const refusal = await expectError(Anthropic.RateLimitError, () => ask(client, { model: "limited" }));
assert.equal(refusal.error.error.type, "rate_limit_error");
assert.ok(Number(refusal.headers.get("retry-after")) > 60);
report("refused");

const patient = newClient("anthropic", { maxRetries: 1 });
for (let n = 0; n < 3; n++) await ask(patient, { model: "paced" });
report("retried");

await expectError(Anthropic.NotFoundError, () => ask(newClient("anthropc")));
const denied = await expectError(Anthropic.AuthenticationError, () => ask(newClient("denied")));
assert.equal(denied.error.error.type, "authentication_error");
const broken = await expectError(Anthropic.InternalServerError, () => ask(newClient("unreachable")));
assert.equal(broken.status, 502);
report("errors");

await expectError(Anthropic.APIConnectionTimeoutError, () => ask(newClient("slow", { timeout: 300 })));
report("timeout");

// The official `@anthropic-ai/sdk` package through the proxy: nothing is set but `baseURL`.
import Anthropic from "@anthropic-ai/sdk";
import { ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, all, assert, raised, tell } from "./proxied.mjs";

const clientOf = (upstream, options = {}) =>
  new Anthropic({ baseURL: `${PROXY}/${upstream}`, apiKey: "sk-proxied", maxRetries: 0, ...options });
const client = clientOf("anthropic");
const asked = { model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: PROMPT }] };
const tools = [{ name: "look_up", input_schema: { type: "object", properties: {} } }];
const ask = (client, more = {}) => client.messages.create({ ...asked, ...more });

const answer = await ask(client, { tools });
assert.ok(answer.content[0].text && answer.usage.output_tokens > 0);
tell("plain");

const events = await all(await ask(client, { stream: true }));
assert.deepEqual([events[0].type, events.at(-1).type], ["message_start", "message_stop"]);
const helper = client.messages.stream({ ...asked, tools });
const pieces = [];
helper.on("text", (text) => pieces.push(text));
assert.equal((await helper.finalMessage()).content[0].text, pieces.join(""));
tell("stream");

const { model, messages } = asked;
const forced = { model: "tools", max_tokens: 100, tools: [{ name: "look_up", input_schema: SCHEMA }] };
const calling = client.messages.stream({ messages, tool_choice: { type: "tool", name: "look_up" }, ...forced });
const parts = [];
calling.on("inputJson", (part) => parts.push(part));
const streamed = await calling.finalMessage();
assert.ok(parts.filter((part) => part).length > 1);
assert.deepEqual(JSON.parse(parts.join("")), ARGUMENTS);
const plain = await client.messages.create({ messages, tool_choice: { type: "any" }, ...forced });
const usages = [];
for (const answer of [plain, streamed]) {
  const [call] = answer.content;
  assert.deepEqual([answer.stop_reason, call.type, answer.content.length], ["tool_use", "tool_use", 1]);
  assert.deepEqual([call.name, call.input], ["look_up", ARGUMENTS]);
  const result = { type: "tool_result", tool_use_id: call.id, content: RESULT };
  const said = [{ role: "assistant", content: answer.content }, { role: "user", content: [result] }];
  const last = await client.messages.create({ messages: [...messages, ...said], ...forced });
  assert.ok(last.stop_reason === "end_turn" && last.content[0].text);
  for (const { usage } of [answer, last]) usages.push([usage.input_tokens, usage.output_tokens]);
}
tell("tools", usages);

assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
tell("count");

await ask(client, { model: "limited" });
const refusal = await raised(Anthropic.RateLimitError, () => ask(client, { model: "limited" }));
assert.equal(refusal.error.error.type, "rate_limit_error");
assert.ok(Number(refusal.headers.get("retry-after")) > 60);
tell("refused");

const patient = clientOf("anthropic", { maxRetries: 1 });
for (let n = 0; n < 3; n++) await ask(patient, { model: "paced" });
tell("retried");

await raised(Anthropic.NotFoundError, () => ask(clientOf("anthropc")));
const denied = await raised(Anthropic.AuthenticationError, () => ask(clientOf("denied")));
assert.equal(denied.error.error.type, "authentication_error");
const broken = await raised(Anthropic.InternalServerError, () => ask(clientOf("away")));
assert.equal(broken.status, 502);
tell("errors");

await raised(Anthropic.APIConnectionTimeoutError, () => ask(clientOf("slow", { timeout: 300 })));
tell("timeout");

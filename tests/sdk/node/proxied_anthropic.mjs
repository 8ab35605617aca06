// The official `@anthropic-ai/sdk` package through the proxy: nothing is set but `baseURL`.
import Anthropic from "@anthropic-ai/sdk";
import { PROMPT, PROXY, all, assert, raised, tell } from "./proxied.mjs";

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

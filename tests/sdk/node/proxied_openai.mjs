// The official `openai` package through the proxy: nothing is set but `baseURL`.
import OpenAI from "openai";
import { PROMPT, PROXY, all, assert, raised, tell } from "./proxied.mjs";

const clientOf = (upstream, options = {}, version = "v1") =>
  new OpenAI({ baseURL: `${PROXY}/${upstream}/${version}`, apiKey: "sk-proxied", maxRetries: 0, ...options });
const client = clientOf("openai");
const messages = [{ role: "user", content: PROMPT }];
const tools = [{ type: "function", function: { name: "look_up", parameters: { type: "object", properties: {} } } }];
const chat = (client, model = "gpt-4o", more = {}) =>
  client.chat.completions.create({ model, messages, ...more });

const answer = await chat(client, "gpt-4o", { tools, tool_choice: "auto" });
assert.ok(answer.choices[0].message.content && answer.usage.completion_tokens > 0);
tell("plain");

const more = { stream: true, tools, stream_options: { include_usage: true } };
const chunks = await all(await chat(client, "gpt-4o", more));
assert.ok(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length > 1);
assert.ok(chunks.at(-1).usage.completion_tokens > 0);
tell("stream");

const response = await client.responses.create({ model: "gpt-4o", input: PROMPT });
const events = await all(await client.responses.create({ model: "gpt-4o", input: PROMPT, stream: true }));
assert.ok(response.output_text && events.at(-1).type === "response.completed");
tell("responses");

const vectors = await client.embeddings.create({ model: "text-embedding-3-small", input: ["one", "two"] });
assert.deepEqual(vectors.data.map((item) => item.embedding), [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]);
tell("embeddings");

await chat(client, "limited");
const refusal = await raised(OpenAI.RateLimitError, () => chat(client, "limited"));
assert.deepEqual([refusal.code, refusal.type], ["rate_limit_exceeded", "requests"]);
assert.ok(Number(refusal.headers.get("retry-after")) > 60);
tell("refused");

const patient = clientOf("openai", { maxRetries: 1 });
for (let n = 0; n < 3; n++) await chat(patient, "paced");
tell("retried");

await raised(OpenAI.NotFoundError, () => chat(clientOf("openai", {}, "v0")));
const missing = await raised(OpenAI.NotFoundError, () => chat(clientOf("opnai")));
assert.match(missing.message, /no such upstream/);
const denied = await raised(OpenAI.AuthenticationError, () => chat(clientOf("denied")));
assert.equal(denied.code, "invalid_api_key");
const broken = await raised(OpenAI.InternalServerError, () => chat(clientOf("away")));
assert.deepEqual([broken.status, broken.code], [502, "upstream_unreachable"]);
tell("errors");

await raised(OpenAI.APIConnectionTimeoutError, () => chat(clientOf("slow", { timeout: 300 })));
tell("timeout");

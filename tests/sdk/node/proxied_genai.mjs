// The official `@google/genai` package through the proxy: nothing is set but `baseUrl`.
import { ApiError, GoogleGenAI } from "@google/genai";
import { PROMPT, PROXY, all, assert, raised, tell } from "./proxied.mjs";

const clientOf = (upstream, options = {}) =>
  new GoogleGenAI({ apiKey: "proxied", httpOptions: { baseUrl: `${PROXY}/${upstream}`, ...options } });
const client = clientOf("gemini");
const ask = (client, model = "gemini-2.5-flash", config = {}) =>
  client.models.generateContent({ model, contents: PROMPT, config });

const tools = [{ functionDeclarations: [{ name: "look_up", description: "Looks it up." }] }];
const answer = await ask(client, "gemini-2.5-flash", { tools });
assert.ok(answer.text && answer.usageMetadata.candidatesTokenCount > 0);
tell("plain");

const chunks = await all(
  await client.models.generateContentStream({ model: "gemini-2.5-flash", contents: PROMPT }),
);
assert.ok(chunks.length > 1 && chunks.at(-1).candidates[0].finishReason === "STOP");
tell("stream");

const vectors = await client.models.embedContent({ model: "gemini-embedding-001", contents: ["one", "two"] });
assert.deepEqual(vectors.embeddings.map((item) => item.values), [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]);
tell("embeddings");

assert.ok((await client.models.countTokens({ model: "gemini-2.5-flash", contents: PROMPT })).totalTokens > 0);
tell("count");

await ask(client, "limited");
const refusal = await raised(ApiError, () => ask(client, "limited"));
assert.equal(refusal.status, 429);
assert.match(refusal.message, /RESOURCE_EXHAUSTED/);
tell("refused");

assert.equal((await raised(ApiError, () => ask(clientOf("gemni")))).status, 404);
assert.equal((await raised(ApiError, () => ask(clientOf("denied")))).status, 400);
assert.equal((await raised(ApiError, () => ask(clientOf("away")))).status, 502);
tell("errors");

const late = await raised(Error, () => ask(clientOf("slow", { timeout: 300 })));
assert.match(String(late), /abort|timeout|timed out/i);
tell("timeout");

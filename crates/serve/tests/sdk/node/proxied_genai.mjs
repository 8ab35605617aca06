// The official `@google/genai` package through the proxy: nothing is set but `baseUrl`.
import { ApiError, FunctionCallingConfigMode, GoogleGenAI } from "@google/genai";
import { ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, all, assert, raised, tell } from "./proxied.mjs";

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

const must = [{ functionDeclarations: [{ name: "look_up", parametersJsonSchema: SCHEMA }] }];
const mode = { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["look_up"] };
const forced = { tools: must, toolConfig: { functionCallingConfig: mode } };
const plain = await client.models.generateContent({ model: "tools", contents: PROMPT, config: forced });
const calling = await client.models.generateContentStream({ model: "tools", contents: PROMPT, config: forced });
const calls = (await all(calling)).filter((chunk) => chunk.functionCalls);
assert.equal(calls.length, 1);
const usages = [];
for (const answer of [plain, ...calls]) {
  const [call] = answer.functionCalls;
  assert.deepEqual([call.name, call.args, answer.functionCalls.length], ["look_up", ARGUMENTS, 1]);
  const result = { functionResponse: { name: call.name, response: { result: RESULT } } };
  const said = [
    { role: "user", parts: [{ text: PROMPT }] },
    answer.candidates[0].content,
    { role: "user", parts: [result] },
  ];
  const last = await client.models.generateContent({ model: "tools", contents: said, config: { tools: must } });
  assert.ok(last.text && !last.functionCalls);
  for (const { usageMetadata: usage } of [answer, last]) {
    usages.push([usage.promptTokenCount, usage.candidatesTokenCount]);
  }
}
tell("tools", usages);

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

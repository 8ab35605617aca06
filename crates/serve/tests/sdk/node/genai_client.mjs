// The official `@google/genai` package through the proxy; it sets only `baseUrl`.
import { ApiError, FunctionCallingConfigMode, GoogleGenAI } from "@google/genai";
import { ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, assert, collect, expectError, report } from "./common.mjs";

const newClient = (upstream, options = {}) =>
  new GoogleGenAI({ apiKey: "proxied", httpOptions: { baseUrl: `${PROXY}/${upstream}`, ...options } });
const client = newClient("gemini");
const ask = (client, model = "gemini-2.5-flash", config = {}) =>
  client.models.generateContent({ model, contents: PROMPT, config });

const tools = [{ functionDeclarations: [{ name: "look_up", description: "Looks it up." }] }];
const response = await ask(client, "gemini-2.5-flash", { tools });
assert.ok(response.text && response.usageMetadata.candidatesTokenCount > 0);
report("plain");

const chunks = await collect(
  await client.models.generateContentStream({ model: "gemini-2.5-flash", contents: PROMPT }),
);
assert.ok(chunks.length > 1 && chunks.at(-1).candidates[0].finishReason === "STOP");
report("stream");

const must = [{ functionDeclarations: [{ name: "look_up", parametersJsonSchema: SCHEMA }] }];
const mode = { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["look_up"] };
const forced = { tools: must, toolConfig: { functionCallingConfig: mode } };
const plain = await client.models.generateContent({ model: "tools", contents: PROMPT, config: forced });
const calling = await client.models.generateContentStream({ model: "tools", contents: PROMPT, config: forced });
const calls = (await collect(calling)).filter((chunk) => chunk.functionCalls);
assert.equal(calls.length, 1);
const usages = [];
for (const response of [plain, ...calls]) {
  const [call] = response.functionCalls;
  assert.deepEqual([call.name, call.args, response.functionCalls.length], ["look_up", ARGUMENTS, 1]);
  const result = { functionResponse: { name: call.name, response: { result: RESULT } } };
  const conversation = [
    { role: "user", parts: [{ text: PROMPT }] },
    response.candidates[0].content,
    { role: "user", parts: [result] },
  ];
  const last = await client.models.generateContent({ model: "tools", contents: conversation, config: { tools: must } });
  assert.ok(last.text && !last.functionCalls);
  for (const { usageMetadata: usage } of [response, last]) {
    usages.push([usage.promptTokenCount, usage.candidatesTokenCount]);
  }
}
report("tools", usages);

const vectors = await client.models.embedContent({ model: "gemini-embedding-001", contents: ["one", "two"], config: { outputDimensionality: 4 } });
assert.deepEqual(vectors.embeddings.map((item) => item.values), [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]]);
report("embeddings");

assert.ok((await client.models.countTokens({ model: "gemini-2.5-flash", contents: PROMPT })).totalTokens > 0);
report("count");

await ask(client, "limited");
const refusal = await expectError(ApiError, () => ask(client, "limited"));
assert.equal(refusal.status, 429);
assert.match(refusal.message, /RESOURCE_EXHAUSTED/);
report("refused");

assert.equal((await expectError(ApiError, () => ask(newClient("gemni")))).status, 404);
assert.equal((await expectError(ApiError, () => ask(newClient("denied")))).status, 400);
assert.equal((await expectError(ApiError, () => ask(newClient("unreachable")))).status, 502);
report("errors");

const late = await expectError(Error, () => ask(newClient("slow", { timeout: 300 })));
assert.match(String(late), /abort|timeout|timed out/i);
report("timeout");

// What the scripts say that go through the proxy: one line of JSON for each case, in order.
import assert from "node:assert/strict";

export const PROXY = process.env.TOLLGATE_PROXY;
export const PROMPT = "What is the capital of France?";
export { assert };

// A tool, and what it is called with where it must be.
export const SCHEMA = {
  type: "object",
  properties: {
    city: { type: "string", enum: ["Paris", "Oslo"] },
    days: { type: "integer", minimum: 3 },
  },
  required: ["city", "days"],
  additionalProperties: false,
};
export const ARGUMENTS = { city: "Paris", days: 3 };
export const RESULT = "It rains in Paris.";

// Tells that a case was gone through; and the sums of usages, each of input and output.
export function tell(name, usages) {
  const sum = (at) => usages?.reduce((total, usage) => total + usage[at], 0);
  console.log(JSON.stringify({ case: name, input: sum(0), output: sum(1) }));
}

export async function raised(error, send) {
  try {
    await send();
  } catch (raised) {
    assert.ok(raised instanceof error, `${error.name}, not ${raised?.stack}`);
    return raised;
  }
  assert.fail(`no ${error.name} was raised`);
}

export async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

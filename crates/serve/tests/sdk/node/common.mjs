// Shared parts of the scripts, which print one line of JSON for each case, in order.
import assert from "node:assert/strict";

export const PROXY = process.env.PACELINE_PROXY;
export const PROMPT = "What is the capital of France?";
export { assert };

// The parameters of a tool, and the arguments with which the simulated provider calls it.
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

// Prints that a case has passed, with the sums of `usages`: pairs of input and output tokens.
export function report(name, usages) {
  const sum = (at) => usages?.reduce((total, usage) => total + usage[at], 0);
  console.log(JSON.stringify({ case: name, input: sum(0), output: sum(1) }));
}

export async function expectError(error, send) {
  try {
    await send();
  } catch (raised) {
    assert.ok(raised instanceof error, `${error.name}, not ${raised?.stack}`);
    return raised;
  }
  assert.fail(`no ${error.name} was raised`);
}

export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

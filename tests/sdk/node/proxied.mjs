// What the scripts say that go through the proxy: one line of JSON for each case, in order.
import assert from "node:assert/strict";

export const PROXY = process.env.TOLLGATE_PROXY;
export const PROMPT = "What is the capital of France?";
export { assert };

export const tell = (name) => console.log(JSON.stringify({ case: name }));

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

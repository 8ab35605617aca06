"""The official `google-genai` package through the proxy; it sets only `base_url`."""

from google import genai
from google.genai import errors, types
from common import ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, expect_error, report


def new_client(upstream, **options):
    options = types.HttpOptions(base_url=f"{PROXY}/{upstream}", **options)
    return genai.Client(api_key="proxied", http_options=options)


client = new_client("gemini")


def ask(client, model="gemini-2.5-flash", **config):
    config = types.GenerateContentConfig(**config)
    return client.models.generate_content(model=model, contents=PROMPT, config=config)


look_up = types.FunctionDeclaration(name="look_up", description="Looks it up.")
response = ask(client, tools=[types.Tool(function_declarations=[look_up])])
assert response.text and response.usage_metadata.candidates_token_count > 0, response
report("plain")

chunks = list(client.models.generate_content_stream(model="gemini-2.5-flash", contents=PROMPT))
assert len(chunks) > 1 and chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP, chunks
report("stream")

must = types.FunctionDeclaration(name="look_up", parameters_json_schema=SCHEMA)
tools = [types.Tool(function_declarations=[must])]
calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["look_up"])
forced = types.GenerateContentConfig(tools=tools, tool_config=types.ToolConfig(function_calling_config=calling))
plain = client.models.generate_content(model="tools", contents=PROMPT, config=forced)
chunks = client.models.generate_content_stream(model="tools", contents=PROMPT, config=forced)
(streamed,) = [chunk for chunk in chunks if chunk.function_calls]
usages = []
for response in [plain, streamed]:
    (call,) = response.function_calls
    assert (call.name, call.args) == ("look_up", ARGUMENTS), call
    result = types.Part.from_function_response(name=call.name, response={"result": RESULT})
    request = types.UserContent(parts=[types.Part(text=PROMPT)])
    conversation = [request, response.candidates[0].content, types.UserContent(parts=[result])]
    free = types.GenerateContentConfig(tools=tools)
    last = client.models.generate_content(model="tools", contents=conversation, config=free)
    assert last.text and not last.function_calls, last
    for usage in [response.usage_metadata, last.usage_metadata]:
        usages.append((usage.prompt_token_count, usage.candidates_token_count))
report("tools", usages)

small = {"output_dimensionality": 4}
response = client.models.embed_content(model="gemini-embedding-001", contents=["one", "two"], config=small)
assert [item.values for item in response.embeddings] == [[0.5] * 4] * 2, response
report("embeddings")

assert client.models.count_tokens(model="gemini-2.5-flash", contents=PROMPT).total_tokens > 0
report("count")

ask(client, "limited")
refusal = expect_error(errors.ClientError, lambda: ask(client, "limited"))
assert refusal.code == 429 and refusal.status == "RESOURCE_EXHAUSTED", refusal.details
assert "Please try again in" in refusal.message, refusal.message
details = {item["@type"].rsplit(".", 1)[1]: item for item in refusal.details["error"]["details"]}
assert details["RetryInfo"]["retryDelay"].endswith("s"), details
report("refused")

# This SDK ignores the delay in the response; the wait is configured.
patient = types.HttpRetryOptions(attempts=2, initial_delay=2.0, jitter=0)
patient = new_client("gemini", retry_options=patient)
for _ in range(3):
    ask(patient, "paced")
report("retried")

missing = expect_error(errors.ClientError, lambda: ask(new_client("gemni")))
assert missing.code == 404, missing
denied = expect_error(errors.ClientError, lambda: ask(new_client("denied")))
assert denied.code == 400 and "API key" in denied.message, denied
broken = expect_error(errors.ServerError, lambda: ask(new_client("unreachable")))
assert broken.code == 502, broken
report("errors")

# The timeout is in milliseconds. The type of the error depends on the HTTP client of the SDK.
timeout = expect_error(Exception, lambda: ask(new_client("slow", timeout=300)))
assert "timed out" in str(timeout).lower() or "timeout" in type(timeout).__name__.lower(), repr(timeout)
report("timeout")

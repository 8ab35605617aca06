"""The official `google-genai` package through the proxy: nothing is set but `base_url`."""

from google import genai
from google.genai import errors, types
from proxied import ARGUMENTS, PROMPT, PROXY, RESULT, SCHEMA, raised, tell


def client_of(upstream, **options):
    options = types.HttpOptions(base_url=f"{PROXY}/{upstream}", **options)
    return genai.Client(api_key="proxied", http_options=options)


client = client_of("gemini")


def ask(client, model="gemini-2.5-flash", **config):
    config = types.GenerateContentConfig(**config)
    return client.models.generate_content(model=model, contents=PROMPT, config=config)


look_up = types.FunctionDeclaration(name="look_up", description="Looks it up.")
answer = ask(client, tools=[types.Tool(function_declarations=[look_up])])
assert answer.text and answer.usage_metadata.candidates_token_count > 0, answer
tell("plain")

chunks = list(client.models.generate_content_stream(model="gemini-2.5-flash", contents=PROMPT))
assert len(chunks) > 1 and chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP, chunks
tell("stream")

must = types.FunctionDeclaration(name="look_up", parameters_json_schema=SCHEMA)
tools = [types.Tool(function_declarations=[must])]
calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["look_up"])
forced = types.GenerateContentConfig(tools=tools, tool_config=types.ToolConfig(function_calling_config=calling))
plain = client.models.generate_content(model="tools", contents=PROMPT, config=forced)
chunks = client.models.generate_content_stream(model="tools", contents=PROMPT, config=forced)
(streamed,) = [chunk for chunk in chunks if chunk.function_calls]
usages = []
for answer in [plain, streamed]:
    (call,) = answer.function_calls
    assert (call.name, call.args) == ("look_up", ARGUMENTS), call
    result = types.Part.from_function_response(name=call.name, response={"result": RESULT})
    asked = types.UserContent(parts=[types.Part(text=PROMPT)])
    said = [asked, answer.candidates[0].content, types.UserContent(parts=[result])]
    free = types.GenerateContentConfig(tools=tools)
    last = client.models.generate_content(model="tools", contents=said, config=free)
    assert last.text and not last.function_calls, last
    for usage in [answer.usage_metadata, last.usage_metadata]:
        usages.append((usage.prompt_token_count, usage.candidates_token_count))
tell("tools", usages)

answer = client.models.embed_content(model="gemini-embedding-001", contents=["one", "two"])
assert [item.values for item in answer.embeddings] == [[0.5] * 4] * 2, answer
tell("embeddings")

assert client.models.count_tokens(model="gemini-2.5-flash", contents=PROMPT).total_tokens > 0
tell("count")

ask(client, "limited")
refusal = raised(errors.ClientError, lambda: ask(client, "limited"))
assert refusal.code == 429 and refusal.status == "RESOURCE_EXHAUSTED", refusal.details
assert "Please try again in" in refusal.message, refusal.message
details = {item["@type"].rsplit(".", 1)[1]: item for item in refusal.details["error"]["details"]}
assert details["RetryInfo"]["retryDelay"].endswith("s"), details
tell("refused")

# This SDK doesn't read the delay; it waits as long as it is set to.
patient = types.HttpRetryOptions(attempts=2, initial_delay=2.0, jitter=0)
patient = client_of("gemini", retry_options=patient)
for _ in range(3):
    ask(patient, "paced")
tell("retried")

missing = raised(errors.ClientError, lambda: ask(client_of("gemni")))
assert missing.code == 404, missing
denied = raised(errors.ClientError, lambda: ask(client_of("denied")))
assert denied.code == 400 and "API key" in denied.message, denied
broken = raised(errors.ServerError, lambda: ask(client_of("away")))
assert broken.code == 502, broken
tell("errors")

# In milliseconds. The error is that of the HTTP client below, which is not part of its contract.
timeout = raised(Exception, lambda: ask(client_of("slow", timeout=300)))
assert "timed out" in str(timeout).lower() or "timeout" in type(timeout).__name__.lower(), repr(timeout)
tell("timeout")

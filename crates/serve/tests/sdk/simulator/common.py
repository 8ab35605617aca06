"""Shared parts of the scripts, which print one line of JSON for each exchange, in order."""

import json
import os

# The simulated providers: one with limits that the scripts do not reach, one that
# admits one request per minute, and one that admits one request per second.
OPEN = os.environ["PACELINE_OPEN_URL"]
FULL = os.environ["PACELINE_FULL_URL"]
PACED = os.environ["PACELINE_PACED_URL"]

PROMPT = "What is the capital of France?"


def report(case, usage=None, **more):
    """Prints an exchange with OPEN: its case, the usage that the SDK read, and further fields."""
    print(json.dumps({"case": case, "usage": usage, **more}), flush=True)


def usage(input, output, cache_read=0, cache_write=0):
    """Returns usage as paceline counts it: `input` is the whole prompt, including cached tokens."""
    return {
        "input": input,
        "output": output,
        "cache_read": cache_read or 0,
        "cache_write": cache_write or 0,
    }


def validated(response):
    """Validates a response, which the SDKs of OpenAI and Anthropic parse without validation."""
    return type(response).model_validate(response.to_dict())


def expect_refusal(error, send):
    """Sends two requests, of which the limit admits one, and returns the error of the second."""
    send()
    try:
        send()
    except error as refusal:
        return refusal
    raise AssertionError("the second request was admitted")

"""What every script says: one line of JSON for each exchange, in order."""

import json
import os

# Providers: with room for everything, with room for one request a minute, and for one a second.
OPEN = os.environ["TOLLGATE_OPEN_URL"]
FULL = os.environ["TOLLGATE_FULL_URL"]
PACED = os.environ["TOLLGATE_PACED_URL"]

PROMPT = "What is the capital of France?"


def tell(case, usage=None, **more):
    """Tells of an exchange with OPEN: the case, the usage that the SDK read, and more."""
    print(json.dumps({"case": case, "usage": usage, **more}), flush=True)


def usage(input, output, cache_read=0, cache_write=0):
    """A usage as tollgate counts: `input` is the whole prompt."""
    return {
        "input": input,
        "output": output,
        "cache_read": cache_read or 0,
        "cache_write": cache_write or 0,
    }


def valid(answer):
    """The SDKs of OpenAI and Anthropic build answers without looking; this looks."""
    return type(answer).model_validate(answer.to_dict())


def refused(error, send):
    """The error of the second request, of which only one fits."""
    send()
    try:
        send()
    except error as refusal:
        return refusal
    raise AssertionError("the second request was admitted")

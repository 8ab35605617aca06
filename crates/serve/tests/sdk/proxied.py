"""What the scripts say that go through the proxy: one line of JSON for each case, in order."""

import json
import os

PROXY = os.environ["TOLLGATE_PROXY"]

PROMPT = "What is the capital of France?"


# A tool, and what it is called with where it must be.
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Oslo"]},
        "days": {"type": "integer", "minimum": 3},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
ARGUMENTS = {"city": "Paris", "days": 3}
RESULT = "It rains in Paris."


def tell(case, usages=None):
    """Tells that a case was gone through; and the sums of usages, each of input and output."""
    told = {"case": case}
    if usages is not None:
        told["input"], told["output"] = map(sum, zip(*usages))
    print(json.dumps(told), flush=True)


def raised(error, send):
    try:
        send()
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__} was raised")

"""The cases of the bench: a provider, what the client is told about it, and what the provider could give."""

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    rate: float = 20.0  # requests per second, or tokens / TOKENS per second
    burst: float = 10.0  # seconds of the rate that a bucket holds
    window: tuple | None = None  # (algorithm, seconds) instead of a bucket
    unit: str = "requests"
    models: int = 1  # each with a limit of its own
    concurrency: int | None = None  # requests in flight instead of a rate
    is_limited: bool = True  # otherwise rate and burst are only what the client was told
    others: float = 0.0  # the part that others use
    chance: float = 0.0  # the share that is refused at random
    has_bursts: bool = False  # of chance: for 20 s, then none for 20 s, repeatedly
    change: float | None = None  # the factor of the limit from the middle on
    storm: bool = False
    latency: tuple = (50, 800)  # milliseconds
    simulate: tuple = ()  # further arguments of the provider
    told: tuple = ()  # arguments of `paceline batch`
    short: int = 900  # requests
    long: float = 300.0  # seconds

    def middle(self, is_long):
        """Returns the time of a change."""
        return 150 if is_long else 20

    def storm_time(self, is_long):
        return (100, 130) if is_long else (15, 25)

    def simulate_arguments(self, is_long):
        least, most = self.latency
        arguments = ["--latency-ms", f"{least}..{most}", *self.simulate]
        if self.chance:
            arguments += ["--refuse", f"rate,{self.chance}{',20s,20s' if self.has_bursts else ''}"]
        if not self.is_limited:
            return arguments
        if self.concurrency:
            return [*arguments, "--concurrency", str(self.concurrency)]
        if self.unit == "tokens":
            arguments += ["--tpm", str(round(self.rate * 60 * TOKENS))]
        else:
            arguments += ["--rpm", str(round(self.rate * 60))]
        if self.window:
            algorithm, seconds = self.window
            arguments += ["--algorithm", algorithm, "--window", f"{seconds}s"]
        else:
            arguments += ["--burst", f"{round(self.burst * 1000)}ms"]
        if self.others:
            arguments += ["--others", str(self.others)]
        if self.change:
            arguments += ["--change", f"{self.middle(is_long)}s=x{self.change}"]
        if self.storm:
            start, end = self.storm_time(is_long)
            arguments += ["--storm", f"{start}s..{end}s"]
        return arguments

    def chance_at(self, time):
        """Returns the share that is refused at random at a time."""
        return 0.0 if self.has_bursts and time % 40 >= 20 else self.chance

    def gives(self, duration, is_long):
        """Returns the amount that the provider could have given in this time, in requests or tokens."""
        return self.models * self.gives_model(duration, is_long)

    def gives_model(self, duration, is_long):
        """Returns the amount for one model."""
        if self.concurrency:
            return self.concurrency * duration / (sum(self.latency) / 2000)
        unit = TOKENS if self.unit == "tokens" else 1
        if self.window:
            _, seconds = self.window
            return math.ceil(duration / seconds) * self.rate * seconds * unit
        # A client that takes what there is at every moment. It sends what the limit allows, and no more for what is
        # refused at random: as a refused request isn't charged, a client that made up for it would take more than this.
        step, given = 0.01, 0.0
        capacity = max(1.0, math.floor(self.rate * self.burst))
        level, (start, end) = capacity, self.storm_time(is_long)
        for index in range(round(duration / step)):
            time = index * step
            factor = self.change if self.change and time >= self.middle(is_long) else 1.0
            bound = max(1.0, math.floor(self.rate * self.burst * factor))
            level = min(bound, level + self.rate * factor * (1 - self.others) * step)
            if not (self.storm and start <= time < end):
                given, level = given + level * (1 - self.chance_at(time)), 0.0
        return given * unit

    def count(self, is_long):
        """Returns the number of requests: in the long mode, as many as fit."""
        if not is_long:
            return self.short
        unit = TOKENS if self.unit == "tokens" else 1
        return round(self.gives(self.long, is_long) / unit)

    def seconds(self, is_long):
        """Returns the duration of a client that uses all that the provider gives."""
        unit = TOKENS if self.unit == "tokens" else 1
        duration = 1.0
        while self.gives(duration, is_long) < self.count(is_long) * unit:
            duration *= 1.1
        return duration + self.latency[1] / 1000

    def requests(self, is_long):
        """Returns the bodies of the requests, the same in every run."""
        generator = random.Random(21)
        size = lambda: round(min(8000.0, max(100.0, generator.lognormvariate(MEDIAN, 1.0))))
        for number in range(self.count(is_long)):
            model = MODELS[number % self.models]
            body = {"model": model, "messages": [{"role": "user", "content": f"Question {number}"}]}
            yield {**body, "max_tokens": size() if self.unit == "tokens" else 50}


# The mean tokens of a request of token cases: that of a log-normal distribution from 100 to 8,000.
TOKENS = 1500
MEDIAN = 6.86

MODELS = ["gpt-4o", "gpt-4o-mini", "gpt-4.1"]

TOLD = ("--provider", "openai", "--rpm")
BLIND = ("--headers", "none")
NO_DELAY = ("--retry-after", "none")

ISSUE = [
    Case("1,200 RPM enforced as 20/s", burst=1, told=(*TOLD, "1200")),
    Case("the same, provider not named", burst=1, told=("--rpm", "1200")),
    Case("the same, no limit headers", burst=1, told=("--rpm", "1200"), simulate=BLIND),
    Case("burst of 10 s, told twice the rate", told=(*TOLD, "2400")),
    Case("the same, no headers, no Retry-After", told=(*TOLD, "2400"), simulate=BLIND + NO_DELAY),
    Case("told nothing, headers"),
    Case("told nothing, no headers", simulate=BLIND),
    Case("others use half of the account", others=0.5, told=(*TOLD, "1200")),
]

UNTOLD = [
    Case("tokens, named", unit="tokens", burst=1, simulate=BLIND),
    Case("tokens, not named", unit="tokens", burst=1, simulate=(*BLIND, "--refusals", "unnamed")),
    Case("fixed window, Retry-After", window=("fixed-window", 9), simulate=BLIND),
    Case("fixed window, no Retry-After", window=("fixed-window", 9), simulate=BLIND + NO_DELAY),
    Case("sliding window, Retry-After", window=("sliding-window", 9), simulate=BLIND),
    Case("sliding window, no Retry-After", window=("sliding-window", 9), simulate=BLIND + NO_DELAY),
    Case("Retry-After always 0", burst=1, simulate=(*BLIND, "--retry-after", "0")),
    Case("Retry-After always 60", burst=1, simulate=(*BLIND, "--retry-after", "60")),
    Case("2/s", rate=2, burst=1, short=90, simulate=BLIND),
    Case("200/s", rate=200, burst=1, short=9000, simulate=BLIND),
    Case("bursts of 0.2 s", burst=0.2, simulate=BLIND),
    Case("8 in flight", concurrency=8, simulate=BLIND),
    Case("answers of 5 s", burst=1, latency=(5000, 5000), simulate=BLIND),
    Case("429s take 0.5 s", simulate=(*BLIND, "--error-latency-ms", "500")),
    Case("the limit falls to a quarter", burst=1, change=0.25, short=600, simulate=BLIND),
    Case("the limit rises fourfold", rate=5, burst=1, change=4.0, simulate=BLIND),
    Case("storm of 503s", storm=True, told=(*TOLD, "1200")),
    Case("tokens of unequal requests, told twice", unit="tokens", told=("--provider", "openai", "--tpm", "3600000")),
    Case("three models, told twice", models=3, short=2700, told=(*TOLD, "2400"), simulate=BLIND),
]

# Refusals that don't depend on the rate and name no limit, beside these limits. A short job is 45 s of the rate.
LIMITS = {
    "no limit, told 20/s": {"is_limited": False, "burst": 60, "short": 2100, "told": (*TOLD, "1200")},
    "told right": {"burst": 60, "short": 2100, "told": (*TOLD, "1200")},
    "told twice": {"burst": 1, "told": (*TOLD, "2400")},
    "told nothing": {"burst": 1},
}
CHANCE = [
    Case(
        f"{share} refused at random{', in bursts' * has_bursts}{', no Retry-After' * bool(delay)}, {limit}",
        chance=share,
        has_bursts=has_bursts,
        simulate=(*BLIND, "--refusals", "unnamed", *delay),
        **provider,
    )
    for has_bursts in (False, True)
    for share in (0.02, 0.05, 0.1, 0.2, 0.3)
    for delay in (NO_DELAY, ())
    for limit, provider in LIMITS.items()
]

CASES = ISSUE + UNTOLD

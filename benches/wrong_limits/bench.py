"""Runs the cases of run.sh and prints their table."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from cases import CASES, CHANCE, ISSUE, TOKENS

SUBJECTS = ["paceline", "sdk", "aimd"]
WARM_UP = 30  # seconds of a long run
FOLDER = Path(__file__).parent


@dataclass
class Result:
    answered: int
    used: float
    refused: int
    refused_late: int
    beyond_chance: float | None
    seconds: float
    is_complete: bool

    def cell(self, is_long):
        refused = f"{self.refused:,} ({self.refused_late:,})" if is_long else f"{self.refused:,}"
        if self.beyond_chance is not None:
            refused += f", {self.beyond_chance:+,.0f}"
        return f"{self.answered:,}{'' if self.is_complete else '*'}, {self.used:.2f}, {refused}"


def client_command(paceline, case, subject, url, folder):
    requests = str(folder / "requests.jsonl")
    if subject != "paceline":
        return [sys.executable, str(FOLDER / "clients.py"), subject, url, requests]
    output = ["-o", str(folder / "out.jsonl"), "--report", str(folder / "report.json"), "--quiet"]
    return [paceline, "batch", requests, *output, "--base-url", url, *case.told]


def run(paceline, case, subject, is_long):
    """Runs one client against a provider of its own."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "requests.jsonl").write_text("".join(f"{json.dumps(body)}\n" for body in case.requests(is_long)))
        # Neither a configuration nor a proxy of the user takes part.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PACELINE_")}
        environment |= {"HOME": name, "OPENAI_API_KEY": "any", "NO_PROXY": "127.0.0.1"}
        start = lambda command, out: stack.enter_context(
            subprocess.Popen(command, cwd=name, env=environment, stdout=out, stderr=subprocess.PIPE, text=True)
        )
        listen = ["--listen", "127.0.0.1:0", "--log", "ledger.jsonl"]
        provider = start([paceline, "simulate", *listen, *case.simulate_arguments(is_long)], subprocess.PIPE)
        stack.callback(provider.kill)
        url = provider.stdout.readline().strip().removeprefix("listening on ")
        if not url:
            raise RuntimeError(f"{case.name}: {provider.stderr.read()}")
        with (folder / "client.txt").open("w") as out:
            client = start(client_command(paceline, case, subject, url, folder), out)
            stack.callback(client.kill)
            try:
                _, errors = client.communicate(timeout=150 + 2 * case.seconds(is_long))
                is_complete = True
            except subprocess.TimeoutExpired:
                client.kill()
                is_complete, errors = False, ""
        provider.send_signal(signal.SIGINT)
        provider.communicate()
        ledger = [json.loads(line) for line in (folder / "ledger.jsonl").open()]
        accepted = [reply for reply in ledger if reply["status"] == 200]
        answered = len(accepted)
        if is_complete:
            answered = answered_by(subject, folder, errors)
        return result(case, is_long, ledger, accepted, answered, is_complete)


def answered_by(subject, folder, errors):
    """Returns the answers that the client counted itself."""
    try:
        if subject == "paceline":
            return json.loads((folder / "report.json").read_text())["succeeded"]
        return int((folder / "client.txt").read_text())
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{subject}: {error}: {errors}") from error


def result(case, is_long, ledger, accepted, answered, is_complete):
    end = max((reply["at"] + reply["latency"] for reply in accepted), default=0.0)
    taken = sum(reply["tokens"] if case.unit == "tokens" else 1 for reply in accepted)
    refused = [reply["at"] for reply in ledger if reply["status"] == 429]
    late = sum(at >= WARM_UP for at in refused)
    beyond = len(refused) - sum(case.chance_at(reply["at"]) for reply in ledger) if case.chance else None
    used = taken / case.gives(end, is_long) if accepted else 0.0
    return Result(answered, used, len(refused), late, beyond, end, is_complete)


def arguments():
    parser = argparse.ArgumentParser(prog="benches/wrong_limits/run.sh", description=__doc__)
    parser.add_argument("filter", nargs="*", help="parts of case names [default: all cases]")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="[default: all, side by side]")
    parser.add_argument("--issue", action="store_true", help="only the eight cases of issue 21")
    parser.add_argument("--chance", action="store_true", help="only the cases of refusals at random")
    parser.add_argument("--long", action="store_true", help="300 s instead of 900 requests")
    parser.add_argument("--latency-ms", type=int, nargs=2, metavar=("MIN", "MAX"), help="of all cases")
    parser.add_argument("--seed", type=int, default=1, help="of the provider [default: %(default)s]")
    parser.add_argument("--cases", type=int, default=1, help="cases at a time [default: 1]")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--paceline", default="target/dist/paceline", help="the command [default: %(default)s]")
    return parser.parse_args()


def main():
    args = arguments()
    cases = ISSUE if args.issue else CHANCE if args.chance else CASES
    cases = [case for case in cases if not args.filter or any(part in case.name for part in args.filter)]
    cases = [replace(case, simulate=(*case.simulate, "--seed", str(args.seed))) for case in cases]
    if args.latency_ms:
        cases = [replace(case, latency=tuple(args.latency_ms)) for case in cases]
    if args.list:
        return print(*(case.name for case in cases), sep="\n")
    if not cases:
        sys.exit(f"no case contains {' or '.join(args.filter)}; --list prints all names")
    subjects = args.subject or SUBJECTS
    paceline = str(Path(args.paceline).resolve())
    print(f"| answered, used, 429s{f' (after {WARM_UP} s)' if args.long else ''} | {' | '.join(subjects)} |")
    print(f"|---{'|---' * len(subjects)}|", flush=True)
    with ThreadPoolExecutor(args.cases * len(subjects)) as pool:
        futures = [
            [pool.submit(run, paceline, case, subject, args.long) for subject in subjects] for case in cases
        ]
        for case, row in zip(cases, futures):
            cells = (future.result().cell(args.long) for future in row)
            print(f"| {case.name} | {' | '.join(cells)} |", flush=True)


main()

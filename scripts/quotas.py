#!/usr/bin/env python3
"""Lists the built-in quotas that should be checked at their sources.

    python3 scripts/quotas.py                     rows older than 90 days
    python3 scripts/quotas.py --days 0            all rows
    python3 scripts/quotas.py --today 2027-01-01  as of another day

Each line has the age in days, the provider, the models, the limits and the source. After a check, change
`limits` and `as_of` of the row in crates/provider/src/quotas.json. The exit code is 1 if a row is listed.
"""

import argparse
import datetime
import json
import pathlib
import sys

TABLE = pathlib.Path(__file__).parent.parent / "crates/provider/src/quotas.json"


def date(text):
    """Reads a day, or the first day of a month."""
    return datetime.date.fromisoformat(text if len(text) > 7 else f"{text}-01")


def rows(table, today):
    """Yields age, provider, models, limits and source of each row."""
    for section in table:
        for row in section["quotas"]:
            limits = ", ".join(f"{name} {amount}" for name, amount in row["limits"].items())
            age = (today - date(row["as_of"])).days
            yield age, section["provider"], " ".join(row["patterns"]), limits, row["source"]


def main():
    parser = argparse.ArgumentParser(description="Lists the built-in quotas that should be checked.")
    parser.add_argument("--days", type=int, default=90, help="list rows that are older (default: 90)")
    parser.add_argument("--today", type=date, default=datetime.date.today(), help="default: today")
    args = parser.parse_args()
    table = json.loads(TABLE.read_text())
    old = [row for row in rows(table, args.today) if row[0] > args.days]
    for age, provider, models, limits, source in sorted(old, reverse=True):
        print(f"{age:>5}  {provider:<14}  {models}: {limits}\n       {source}")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())

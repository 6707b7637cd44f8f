#!/usr/bin/env python3
"""Writes docs/benchmarks.md from databases of runs: scripts/benchmarks.py FIRST.db [AGAIN.db ...]

The first database gives the tables; the others, runs of the same command on the same GPU, give the
run-to-run spread. Every number comes out of the databases.
"""
import sqlite3
import sys

COPY_GBPS = 4280  # measured ceiling of a copy on an H200, bytes read and written: docs/model.md


def rows(path, query):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    found = db.execute(query).fetchall()
    db.close()
    return found


def keys(text):
    return dict(pair.split("=", 1) for pair in text.split(","))


def name(problem):
    p = keys(problem)
    return f"T {p['tokens']}, Hk {p['heads_k']}, Hv {p['heads_v']}"


def chunk(row):
    return int(keys(row["config"])["chunk"])


def order(row):
    p = keys(row["problem"])
    return -int(p["tokens"]) * int(p["heads_v"]), -int(p["heads_k"]), chunk(row), row["time_us"]


def span(shares):
    if not shares:
        return ""
    return f"{100 * min(shares):+.2f} to {100 * max(shares):+.2f} %"


TIMED = """SELECT * FROM results WHERE outcome = 'ok' AND provenance IN ('measured', 'replayed')
           AND time_us IS NOT NULL"""


def best(path):
    """The fastest row of each problem and chunk, and the others whose interval overlaps it."""
    found = {}
    for row in sorted(rows(path, TIMED), key=order):
        group = found.setdefault((row["problem"], chunk(row)), [])
        if not group or row["time_low_us"] <= group[0]["time_high_us"]:
            group.append(row)
    return found


def table(headings, lines):
    print("|" + "|".join(f" {h} " for h in headings) + "|")
    print("|" + "|".join(" --- " for _ in headings) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def without_chunk(config):
    return "`" + ",".join(f"{k}={v}" for k, v in keys(config).items() if k != "chunk") + "`"


def provenance(path):
    for run in rows(path, """SELECT gpu, driver, min(date) AS first, max(date) AS last, count(*) AS n,
                                    min(sm_clock_mhz) AS slow, max(sm_clock_mhz) AS fast
                             FROM runs GROUP BY gpu, driver"""):
        clock = f", SM clock {run['slow']:.0f} to {run['fast']:.0f} MHz" if run["slow"] else ""
        print(f"- {run['gpu']}, driver {run['driver']}: {run['n']} runs from {run['first']} to "
              f"{run['last']}{clock}")


def main(paths):
    first = best(paths[0])
    print("# Benchmarks\n")
    print("Written by `scripts/benchmarks.py` from the databases of `./kkttune --arch sm90` runs; no "
          "number is typed in. Times are medians of one graph launch with cold caches "
          "([how](measurement.md)); the floor is the launch's bytes at the copy ceiling of the H200, "
          f"{COPY_GBPS / 1000} TB/s.\n")
    for path in paths:
        provenance(path)
    print("\n## kkt_solve: the best of each chunk size\n")
    lines = []
    for (problem, c), group in first.items():
        w = group[0]
        floor = w["hbm_bytes_predicted"] / COPY_GBPS / 1e3
        lines.append([name(problem), str(c), f"{w['time_us']:.1f}",
                      f"{w['time_low_us']:.1f} to {w['time_high_us']:.1f}", str(len(group) - 1),
                      f"{floor:.1f}", f"{w['time_us'] / floor:.2f}", without_chunk(w["config"])])
    table(["problem", "C", "us", "95 % interval", "ties", "floor us", "x floor", "configuration"],
          lines)
    counted = [r for r in sorted(rows(paths[0], TIMED), key=order)
               if r["hbm_bytes_counted"] is not None]
    if counted:
        print("## Bytes of device memory: predicted against counted\n")
        print("Finalists, counted by CUPTI over the launch and a drain of L2 ([how](counters.md)).\n")
        groups = {}
        for r in counted:
            groups.setdefault((r["problem"], chunk(r)), []).append(
                (r["hbm_bytes_predicted"] / r["hbm_bytes_counted"] - 1, r))
        lines = []
        for (problem, c), group in groups.items():
            apart = {spills: [d for d, r in group if bool(r["spill_bytes"]) == spills]
                     for spills in (False, True)}
            some = group[0][1]
            lines.append([name(problem), str(c), str(len(group)),
                          f"{some['hbm_bytes_predicted'] / 1e6:.2f}",
                          f"{some['hbm_bytes_counted'] / 1e6:.2f}", span(apart[False]),
                          span(apart[True])])
        print("A configuration whose registers spill moves local memory as well, which the "
              "prediction leaves out.\n")
        table(["problem", "C", "configurations", "predicted MB", "counted MB",
               "difference, no spills", "difference, spills"], lines)
    if len(paths) > 1:
        print("## Run to run\n")
        others = [best(path) for path in paths[1:]]
        lines = []
        for key, group in first.items():
            again = [o[key] for o in others if key in o]
            times = [group[0]["time_us"]] + [g[0]["time_us"] for g in again]
            tied = {r["config"] for r in group}
            same = all(g[0]["config"] in tied for g in again)
            spread = max(times) / min(times) - 1
            complete = len(again) == len(others)
            agree = complete and (same or spread <= 0.02)
            lines.append([name(key[0]), str(key[1]), ", ".join(f"{t:.1f}" for t in times),
                          f"{100 * spread:.2f} %", "yes" if same else "no",
                          "yes" if agree else "no"])
        table(["problem", "C", "winner's us, run by run", "spread", "same tie set",
               "within 2 % or same tie set"], lines)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])

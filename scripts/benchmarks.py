#!/usr/bin/env python3
"""Writes docs/benchmarks.md (to standard output) from databases of runs on a GPU.

The first database gives the tables. Further ones are runs of one command on one card, each from an
empty database; compared with each other they give the run-to-run spread. Every number comes out of the files given; none is typed in.
"""
import argparse
import datetime
import json
import sqlite3

import benchmark_peers

COPY_GBPS = 4280  # measured ceiling of a copy on an H200, bytes read and written: docs/model.md
PRECISE = ("bf16x3", "fp32")  # couplings of kkt_solve that keep about fp32's digits

TIMED = """SELECT * FROM results WHERE outcome = 'ok' AND provenance IN ('measured', 'replayed')
           AND time_us IS NOT NULL"""
SETTINGS = """SELECT p.kernel, g.style, p.text AS problem, g.text AS config,
                   r.sm_clock_mhz AS mhz, r.date
            FROM best_runs f JOIN runs r ON r.id = f.run_id
            JOIN candidates c ON c.id = f.candidate_id
            JOIN problems p ON p.id = c.problem_id
            JOIN configurations g ON g.id = c.configuration_id
            WHERE r.sm_clock_mhz IS NOT NULL AND r.date IS NOT NULL"""
ONE_RUN_S = 900  # what was timed farther apart may be of another run and another card
PIPELINES = """SELECT * FROM pipelines WHERE outcome = 'ok' AND time_us IS NOT NULL
               AND provenance IN ('measured', 'replayed')"""
# Beside the peers a time of earlier sources, marked as such, tells more than none.
PIPELINES_STALE_TOO = """SELECT * FROM pipelines WHERE outcome = 'ok' AND time_us IS NOT NULL
                         AND provenance IN ('measured', 'replayed', 'stale')"""


def rows(path, query):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    found = db.execute(query).fetchall()
    db.close()
    return found


def keys(text):
    return dict(pair.split("=", 1) for pair in text.split(","))


def matrix_name(p):
    """A product's problem: m x n x k, or m x k of a matrix and a vector."""
    words = [" x ".join(p[key] for key in "mnk" if key in p)]
    if p.get("lda", "0") != "0":
        words.append(f"lda {p['lda']}")
    return ", ".join(words + [p[key] for key in ("layout", "dtype") if key in p])


def name(problem):
    """What tells a problem from the default one, in words."""
    p = keys(problem)
    if "tokens" not in p:
        return matrix_name(p)
    words = [f"T {p['tokens']}", f"Hk {p['heads_k']}", f"Hv {p['heads_v']}"]
    if p.get("sequences", "1") != "1":
        words.insert(0, f"{p['sequences']} sequences")
    words += [f"{k} {p[k]}" for k in ("dk", "dv") if p.get(k, "128") != "128"]
    if p.get("dtype") != "bf16":
        words.append(p.get("dtype", ""))
    if p.get("gated", "1") == "0":
        words.append("no gate")
    if p.get("t_form", "t") == "t_beta":
        words.append("T diag(beta)")
    return ", ".join(words)


def chunk(row):
    """The chunk size of a configuration; 0 where its family has none."""
    return int(keys(row["config"]).get("chunk", 0))


def shown(chunk_size):
    return str(chunk_size) if chunk_size else ""


def size(problem):
    p = keys(problem)
    if "tokens" not in p:
        return -int(p["m"]) * int(p.get("n", 1)) * int(p["k"]), 0, 0, "", problem
    return (-int(p["tokens"]) * int(p["heads_v"]), -int(p["heads_k"]), int(p.get("sequences", 1)),
            p.get("t_form", "t"), problem)


def order(row):
    return row["kernel"], row["style"], *size(row["problem"]), chunk(row), row["time_us"]


def best(found):
    """The fastest row of each kernel, style, problem and chunk, and those whose interval meets
    its."""
    groups = {}
    for row in sorted(found, key=order):
        key = row["kernel"], row["style"], row["problem"], chunk(row)
        group = groups.setdefault(key, [])
        if not group or row["time_low_us"] <= group[0]["time_high_us"]:
            group.append(row)
    return groups


def span(shares):
    if not shares:
        return ""
    return f"{100 * min(shares):+.2f} to {100 * max(shares):+.2f} %"


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


def floor_us(row):
    return row["hbm_bytes_predicted"] / COPY_GBPS / 1e3


def winner_line(group, copies):
    w = group[0]
    copy = copies.get(int(w["hbm_bytes_predicted"]))
    return [name(w["problem"]), shown(chunk(w)), f"{w['time_us']:.1f}",
            f"{w['time_low_us']:.1f} to {w['time_high_us']:.1f}", str(len(group) - 1),
            f"{floor_us(w):.1f}", f"{w['time_us'] / floor_us(w):.2f}",
            f"{copy:.1f}" if copy else "", f"{w['time_us'] / copy:.2f}" if copy else "",
            f"{w['registers_compiled']}" if w["registers_compiled"] else "",
            f"{w['spill_bytes']}" if w["spill_bytes"] is not None else "",
            f"{w['rel_fro']:.1e}" if w["rel_fro"] is not None else "", without_chunk(w["config"])]


WINNER = ["problem", "C", "us", "95 % interval", "ties", "floor us", "x floor", "copy us", "x copy",
          "registers", "spilled B", "error", "configuration"]


def winners(groups, copies):
    families = sorted({(kernel, style) for kernel, style, _, _ in groups})
    for family in families:
        chunked = any(key[3] for key in groups if key[:2] == family)
        print(f"## {family[0]}, {family[1].replace('_', ' ')}: the best of each "
              f"{'chunk size' if chunked else 'problem'}\n")
        table(WINNER, [winner_line(group, copies) for key, group in groups.items()
                       if key[:2] == family])


def precise(found, copies):
    """kkt_solve with couplings that keep fp32's digits: what precision costs."""
    kept = [r for r in found if r["kernel"] == "kkt_solve" and
            keys(r["config"]).get("couple") in PRECISE and chunk(r) == 64]
    if kept:
        print("## kkt_solve with precise couplings, C = 64\n")
        table(WINNER, [winner_line(group, copies) for group in best(kept).values()])


def rate(row, reads):
    """What a product's time is worth: TFLOP/s, or for a matrix and a vector the share of the
    fastest reading of the same bytes."""
    p = keys(row["problem"])
    if "n" in p and "m" in p:
        flop = 2 * int(p["m"]) * int(p["n"]) * int(p["k"])
        return f"{flop / row['time_us'] / 1e6:.0f} TFLOP/s"
    if "tokens" in p:
        return ""
    near = [us for size_read, us in reads.items()
            if abs(size_read / row["hbm_bytes_predicted"] - 1) < 0.01]
    read = min(near, default=None)
    return f"{100 * read / row['time_us']:.1f} % of reading" if read else ""


def routines(found):
    """The library's rows by kernel, problem and chunk: the fastest of each routine, by routine."""
    fastest = {}
    for row in sorted(found, key=order):
        of_problem = fastest.setdefault((row["kernel"], row["problem"], chunk(row)), {})
        of_problem.setdefault(keys(row["config"]).get("routine", ""), row)
    return fastest


def settings_of(path):
    """{(kernel, style, problem, configuration): SM clock in MHz and moment of its timing}"""
    return {(r["kernel"], r["style"], r["problem"], r["config"]):
            (r["mhz"], datetime.datetime.fromisoformat(r["date"].replace("Z", "+00:00")))
            for r in rows(path, SETTINGS)}


def beside_library(groups, library, reads, settings):
    """Each problem's best of every write style against the vendor's library; ratios of two runs are
    marked."""
    def setting(row):
        return settings.get((row["kernel"], row["style"], row["problem"], row["config"]))

    def clock(row):
        return f"{setting(row)[0]:.0f}" if setting(row) else ""

    def apart(a, b):
        both = setting(a), setting(b)
        return not all(both) or abs((both[0][1] - both[1][1]).total_seconds()) > ONE_RUN_S

    lines = []
    for key, group in groups.items():
        for base in library.get((key[0], *key[2:]), {}).values():
            w = group[0]
            lines.append([key[0], key[1].replace("_", " "), name(key[2]), shown(key[3]),
                          f"{w['time_us']:.1f}", rate(w, reads), clock(w),
                          f"{base['time_us']:.1f}", rate(base, reads), clock(base),
                          f"{base['time_us'] / w['time_us']:.2f}" + (" *" if apart(w, base) else ""),
                          without_chunk(base["config"])])
    if lines:
        print("## Beside the library\n")
        print("The vendor's library on the same problem, verified and timed in the same run "
              "but where a ratio has a *: there the two are of different runs, maybe of different "
              "cards; above 1 the kernel is ahead. Where the clocks differ, the card's power limit was met "
              "while one of the two was timed, and the ratio says little.\n")
        table(["kernel", "style", "problem", "C", "us", "", "SM MHz", "library us", "",
               "SM MHz", "library / kernel", "library's routine"], lines)


def pipelines(path):
    found = rows(path, PIPELINES)
    if not found:
        return found
    print("## Whole pipelines, end to end\n")
    print("Launches timed together as one graph; `overlapped` ones by programmatic dependent "
          "launch. The sum is that of the kernels timed alone.\n")
    fastest = {}
    for row in sorted(found, key=lambda r: r["time_us"]):
        fastest.setdefault((row["pipeline"], row["problem"], row["chunk"]), row)
    lines = []
    for key in sorted(fastest, key=lambda k: (k[0], *size(k[1]), k[2])):
        r = fastest[key]
        lines.append([r["pipeline"], name(r["problem"]), str(r["chunk"]), f"{r['time_us']:.1f}",
                      r["launch"], f"{r['members_us']:.1f}" if r["members_us"] else "",
                      f"`{r['members']}`"])
    table(["pipeline", "problem", "C", "us", "launch", "sum us", "kernels"], lines)
    return found


def counted(found):
    kept = [r for r in sorted(found, key=order) if r["hbm_bytes_counted"] is not None]
    if not kept:
        return
    print("## Bytes of device memory: predicted against counted\n")
    print("Finalists, counted by CUPTI over the launch and a drain of L2 ([how](counters.md)). A "
          "configuration whose registers spill moves local memory as well, which the prediction "
          "leaves out.\n")
    groups = {}
    for r in kept:
        groups.setdefault((r["kernel"], r["style"], r["problem"], chunk(r)), []).append(
            (r["hbm_bytes_predicted"] / r["hbm_bytes_counted"] - 1, r))
    lines = []
    for (kernel, style, problem, c), group in groups.items():
        apart = {spills: [d for d, r in group if bool(r["spill_bytes"]) == spills]
                 for spills in (False, True)}
        some = group[0][1]
        lines.append([f"{kernel} {style.replace('_', ' ')}", name(problem), shown(c),
                      str(len(group)), f"{some['hbm_bytes_predicted'] / 1e6:.2f}",
                      f"{some['hbm_bytes_counted'] / 1e6:.2f}", span(apart[False]),
                      span(apart[True])])
    table(["kernel", "problem", "C", "configurations", "predicted MB", "counted MB",
           "difference, no spills", "difference, spills"], lines)


def run_to_run(first, others, note):
    """Only what was run again: a problem that no other run reached says nothing."""
    lines = []
    for key, group in first.items():
        again = [o[key] for o in others if key in o]
        if not again:
            continue
        times = [group[0]["time_us"]] + [g[0]["time_us"] for g in again]
        tied = {r["config"] for r in group}
        same = all(g[0]["config"] in tied for g in again)
        spread = max(times) / min(times) - 1
        lines.append([key[0], name(key[2]), shown(key[3]), ", ".join(f"{t:.1f}" for t in times),
                      f"{100 * spread:.2f} %", "yes" if same else "no",
                      "yes" if same or spread <= 0.02 else "no"])
    if lines:
        print("## Run to run\n")
        print("The same command again, each time from an empty database. Two times in a line: "
              f"the third run's time was up before that problem. {note}\n")
        table(["kernel", "problem", "C", "winner's us, run by run", "spread", "same tie set",
               "within 2 % or same tie set"], lines)


def moves_of(path):
    """{bytes: the fastest's microseconds} from lines of JSON with `bytes` and `us`."""
    found = {}
    if path:
        with open(path, encoding="utf-8") as lines:
            for line in map(json.loads, filter(str.strip, lines)):
                found[line["bytes"]] = min(line["us"], found.get(line["bytes"], line["us"]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", help="database of the run that is told")
    parser.add_argument("again", nargs="*", help="databases of runs of one command")
    parser.add_argument("--copies", help="JSON lines of scripts/copy_of_same_bytes")
    parser.add_argument("--reads", help="JSON lines of reading alone, same bytes, same run")
    parser.add_argument("--peers", help="JSON lines of the public kernels' times")
    parser.add_argument("--beside", help="database of the run beside the peers; default FIRST")
    parser.add_argument("--again-note", default="", help="which sources the repeated runs had")
    parser.add_argument("--note", default="", help="how the peers' run stands to the others")
    options = parser.parse_args()
    found, copies = rows(options.first, TIMED), moves_of(options.copies)
    print("# Benchmarks\n")
    print("Written by `scripts/benchmarks.py` from databases of runs on the GPU; no number is "
          "typed in. Times are medians of one graph launch with cold caches "
          "([how](measurement.md)); the floor is the launch's bytes at the copy ceiling of the "
          f"H200, {COPY_GBPS / 1000} TB/s, the copy one of as many bytes, timed alike in the same "
          "run (`scripts/copy_of_same_bytes.cu`).\n")
    for path in [options.first] + options.again:
        provenance(path)
    print()
    library = routines([row for row in found if row["style"] == "library"])
    found = [row for row in found if row["style"] != "library"]
    groups = best(found)
    winners(groups, copies)
    precise(found, copies)
    beside_library(groups, library, moves_of(options.reads), settings_of(options.first))
    pipelines(options.first)
    if options.peers:
        beside = options.beside or options.first
        benchmark_peers.section(options.peers, best(rows(beside, TIMED)),
                                rows(beside, PIPELINES_STALE_TOO), table, options.note)
    counted(found)
    again = [best(rows(path, TIMED)) for path in options.again]
    if len(again) > 1:
        run_to_run(again[0], again[1:], options.again_note)


if __name__ == "__main__":
    main()

"""The part of docs/benchmarks.md that stands beside the public kernels.

The peers' times come from JSON lines of one run on a GPU of the same kind; the note says whether the
program's own times were taken on the same card: kind "env", "versions", "kkt" and "fwd"
(docs/benchmarks.md says how to repeat it). Every number comes out of those two files.
"""
import json
import math

# Which of a peer's calls does the same work, by problem kind; the note says what it leaves out.
SOLVERS = [
    ("FLA", "FLA fused kernel (gated)"),
    ("FlashQLA, no gate", "FlashQLA kkt_solve (dense, no g)"),
    ("FlashInfer, no gate", "FlashInfer CP T-precompute (no g, beta folded)"),
]
FORWARDS = ["FLA", "FlashQLA", "FlashInfer", "FlashQLA noCP", "FlashInfer noCP"]


def load(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def of_kind(lines, kind):
    return [line for line in lines if line["kind"] == kind]


def versions(lines):
    found = of_kind(lines, "versions")
    if not found:
        return ""
    return ", ".join(f"{name} {version}" for name, version in sorted(found[0]["ver"].items()))


def microseconds(result):
    return result.get("us") if result else None


def solver_lines(lines, ours):
    """One line a shape: the peers, ours, and how many times faster ours is than the fastest.

    `ours`: {(tokens, heads_k, heads_v): microseconds}, C = 64.
    """
    out = []
    for line in of_kind(lines, "kkt"):
        mine = ours.get((line["T"], line["hk"], line["hv"]))
        times = [microseconds(line["res"].get(call)) for _, call in SOLVERS]
        known = [t for t in times if t]
        if mine is None or not known:
            continue
        out.append([f"T {line['T']}, Hk {line['hk']}, Hv {line['hv']}"] +
                   [f"{t:.1f}" if t else "" for t in times] +
                   [f"{mine:.1f}", f"{min(known) / mine:.2f}"])
    return out


def forward_key(line):
    """Of "1x32768", one sequence, or "8192x4", four of 8192."""
    first, second = (int(part) for part in line["lens"].split("x"))
    sequences = 1 if first == 1 else second
    return sequences, first * second, line["hk"], line["hv"]


def forward_lines(lines, ours):
    """As solver_lines; `ours`: {(sequences, tokens, heads_k, heads_v): (microseconds, C, name)}."""
    out = []
    for line in of_kind(lines, "fwd"):
        if line["gate"] != "logsig":
            continue
        mine = ours.get(forward_key(line))
        times = [microseconds(line["res"].get(call)) for call in FORWARDS]
        # Where context parallelism is off, the peer's plain call is the one without it.
        plain = [times[0]] + [times[i + 2] or times[i] for i in (1, 2)]
        if mine is None or not any(times):
            continue
        best, best_plain = (min(t for t in ts if t) for ts in (times, plain))
        out.append([f"{line['lens']} {line['hk']}/{line['hv']}"] +
                   [f"{t:.0f}" if t else "" for t in times] +
                   [f"{mine[0]:.0f}", f"{mine[2]}, C {mine[1]}", f"{best / mine[0]:.2f}",
                    f"{best_plain / mine[0]:.2f}"])
    return out


def errors(lines):
    found = [result["rel_lower"] for line in of_kind(lines, "kkt")
             for result in line["res"].values()
             if result.get("rel_lower") and math.isfinite(result["rel_lower"])]
    return (min(found), max(found)) if found else None


def keys(text):
    return dict(pair.split("=", 1) for pair in text.split(","))


def plain(problem):
    """Whether a problem is one of those that the peers run: bf16, d 128, gated, no batch."""
    p = keys(problem)
    usual = {"batch": "1", "dk": "128", "dv": "128", "dtype": "bf16", "gated": "1"}
    return all(p.get(key, value) == value for key, value in usual.items())


def our_solvers(groups):
    """{(tokens, heads_k, heads_v): microseconds} of kkt_solve at C = 64, T itself."""
    found = {}
    for (kernel, style, problem, c), group in groups.items():
        p = keys(problem)
        if (kernel == "kkt_solve" and style != "library" and c == 64 and plain(problem) and
                p.get("t_form", "t") == "t" and p.get("sequences", "1") == "1"):
            found[int(p["tokens"]), int(p["heads_k"]), int(p["heads_v"])] = group[0]["time_us"]
    return found


def our_forwards(pipelines):
    """{(sequences, tokens, heads_k, heads_v): (microseconds, C, pipeline)}, the fastest; of
    earlier sources where there is no other."""
    found = {}
    for row in sorted(pipelines, key=lambda r: (r["provenance"] == "stale", r["time_us"])):
        p = keys(row["problem"])
        if plain(row["problem"]):
            key = tuple(int(p[k]) for k in ("sequences", "tokens", "heads_k", "heads_v"))
            title = row["pipeline"] + (" (earlier sources)" if row["provenance"] == "stale" else "")
            found.setdefault(key, (row["time_us"], row["chunk"], title))
    return found


def section(path, groups, pipelines, table, note):
    lines = load(path)
    solvers = solver_lines(lines, our_solvers(groups))
    forwards = forward_lines(lines, our_forwards(pipelines))
    if not solvers and not forwards:
        return
    print("## Beside the public kernels\n")
    env = of_kind(lines, "env")
    card = f" {env[0]['gpu']}, torch {env[0]['torch']}." if env else ""
    print(f"{versions(lines)};{card} Medians of one graph launch each, 512 MiB read before, "
          f"microseconds. {note}\n")
    if solvers:
        print("T from K, beta and g, C = 64; ours and FLA's apply the gate, the others leave it "
              "to the consumer.\n")
        table(["problem"] + [title for title, _ in SOLVERS] + ["kkttune", "fastest / ours"],
              solvers)
        spread = errors(lines)
        if spread:
            print(f"Their errors, strictly lower part: {spread[0]:.1e} to {spread[1]:.1e}.\n")
    if forwards:
        print("Forward with initial and final state; `noCP`: context parallelism off, where the "
              "peer would use it.\n")
        table(["sequences, Hk/Hv"] + FORWARDS +
              ["kkttune", "pipeline", "fastest / ours", "fastest without CP / ours"], forwards)

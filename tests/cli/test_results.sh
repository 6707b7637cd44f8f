#!/usr/bin/env bash
# What the commands print as JSON is described: every schema and member is in the documentation.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export PYTHONDONTWRITEBYTECODE=1
docs=$(cd -- "$tests/../../docs" && pwd)
fake=(--backend fake:seed=1)
small=(--problem "tokens=512,heads_k=1,heads_v=1" --config chunk=16)
python3 - "$tests" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import npy, os
os.mkdir("in")
npy.save("in/l.npy", (2, 2), [0.0, 0.0, 0.5, 0.0], "<f8")
END

# described ARGUMENT...: the command's schema has a heading in results.md, and all its members are
# named between that heading and the next.
described() {
    expect 0 "$@" --json
    python3 - "$docs/results.md" .out <<'END' || die "kkttune $* --json: see the lines above"
import json, re, sys
page, printed = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
schema = printed["schema"]
head = f"## `{schema}`"
if head not in page:
    sys.exit(f"results.md does not describe {schema}")
part = page[page.index(head):].split("\n## ")[0]
named = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`]+)`", part)))) | {"schema", "arch", "device", "device_name"}
# Keys that are a kernel's or a table's own, and entries, which formats.md describes.
own = {"config", "problem", "parts", "overlays", "metrics", "table_regs_per_thread", "best",
       "baselines", "chunk_choice"}
def members(value):
    if isinstance(value, list):
        return set().union(*map(members, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(members(v) for k, v in value.items() if k not in own))
missing = members(printed) - named
if schema == "kkttune.model/1":
    missing -= {"tokens", "heads_k", "heads_v", "dk", "dv", "gated", "sequences"} # problem keys
if missing:
    sys.exit(f"results.md does not name these members of {schema}: {sorted(missing)}")
END
}

described list
described list counters,archs
described model --arch sm90
described occupancy --arch sm90 --threads 128 --regs 64 --smem 0
described explain kkt_solve --arch sm90 --cache "$work/cache"
described tune kkt_solve --arch sm90 "${fake[@]}" "${small[@]}" --budget evals=3 --cache "$work/cache"
described verify kkt_solve --arch sm90 "${fake[@]}" "${small[@]}" --count 2
described reference kkt_solve --in in --out out

# Whatever schema the program knows is somewhere in the documentation.
while IFS= read -r schema; do
    grep -qF "$schema" "$docs"/*.md || die "no page describes $schema"
done < <(grep -ohE 'kkttune\.[a-z]+/1' "$tests"/../../{cli,db,reports}/*.c \
    "$tests"/../../{reports,tuner}/*/*.c | sort -u)

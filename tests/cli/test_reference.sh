#!/usr/bin/env bash
# `kkttune reference` over .npy files: values, shapes that do not fit, verdicts; `run` and `verify`
# where there is no GPU.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || {
    echo "python3 is not installed: skipped"
    exit 0
}
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$work/cache

# 90 tokens, one key head, two value heads, a gate; k as bf16, no leading batch.
mkdir gated dup lower bad long fp16 product wide capped
python3 - <<'END' || die "making the inputs failed"
from npy import *
T, Hv, dk = 90, 2, 16
keys = unit_keys(T, dk)
beta = [0.3 + 0.6 * ((7 * i) % 11) / 11 for i in range(T * Hv)]
gate = [-0.05 * ((3 * i) % 5) for i in range(T * Hv)]
save("gated/k.npy", (T, 1, dk), [bf16(x) for k in keys for x in k], "<u2")
save("gated/beta.npy", (1, T, Hv), beta)
save("gated/g.npy", (T, Hv), gate)
save("dup/k.npy", (1, 64, 1, dk), [x for k in unit_keys(64, dk, 2.0, True) for x in k], "<f8")
save("dup/beta.npy", (1, 64, 1), [1.0] * 64)
rng = random.Random(5)
save("lower/l.npy", (2, 64, 64), [rng.gauss(0, 1) if j < i else 0.0
     for m in range(2) for i in range(64) for j in range(64)], "<f8")
# Two sequences and an empty one between them.
save("long/k.npy", (1, T, 1, dk), [x for k in keys for x in k], "<f2")
save("long/beta.npy", (1, T, 1), [0.5] * T, "<f8")
save("long/cu_seqlens.npy", (4,), [0, 37, 37, T], "<i8")
# Beyond fp16 where they are summed.
save("product/a.npy", (2, 8), [300.0] * 16, "<f2")
save("product/b.npy", (8, 3), [300.0] * 24, "<f2")
save("capped/c.npy", (2, 3), [65504.0] * 6, "<f2")
save("wide/a.npy", (4, 6), [rng.gauss(0, 1) for _ in range(24)])
save("wide/b.npy", (6, 5), [rng.gauss(0, 1) for _ in range(30)], "<f8")
save("wide/x.npy", (6,), [rng.gauss(0, 1) for _ in range(6)], "<f8")
END

expect 0 reference kkt_solve --config chunk=32 --in gated --out out --json
json 'd["schema"] == "kkttune.check/1" and d["verdict"] == "ok" and d["rel_fro"] is None'
json '"gated=1" in d["problem"] and "tokens=90" in d["problem"] and "dk=16" in d["problem"]'
json '1 <= d["growth"] < 1.001 and 1 < d["cond_estimate"] < 10 and not d["compared"]'
# What the judgement rests on is printed, and nothing else.
json 'd["config"] == "chunk=32" and d["rounding"] == 2.0**-24'
expect 0 reference kkt_solve --config couple=tf32,base=8 --in gated --out out --json
json 'd["config"] == "base=8,chunk=64,couple=tf32" and d["rounding"] == 2.0**-11'
expect 0 reference kkt_solve --config couple=fp32 --in gated --out out
has "$out" "rounding       5.96e-08"
has "$out" "nothing to judge: no t.npy among the inputs"
[[ $out != *verdict* && $out != *rel_fro* ]] || die "a verdict on nothing"
# What was read and what was not; a misspelled gate is told.
has "$out" "read           gated/k.npy, gated/beta.npy, gated/g.npy"
has "$out" "wrote          out/t.npy"
[[ $out == *"problem        "*gated=1* ]] || die "the problem is not told"
[ -z "$err" ] || die "a note about nothing"
# Of a family without a condition none is told, and nothing is wrong with what is not judged.
expect 0 reference gemm --in product --out out
[[ $out == *"growth         7.2e+05"* && $out != *nan* && $out != *inexact* ]] ||
    die "more is told of a product than is known"
# A result in a wider type is no fp16 that should have been infinite; the largest fp16 is.
expect 0 reference gemm --in product --compare out --json
json 'd["verdict"] == "ok" and d["rel_fro"] == 0'
expect 1 reference gemm --in product --compare capped
has "$err" "6 of 6 elements that must be exact are not; the first is c[0,0], which is 65504, not 720000"
# Products of values of any type.
expect 0 reference gemm --in wide --out out
expect 0 reference gemv --in wide --out out
python3 - <<'END' || die "products of fp32 and fp64 values differ from the definition"
from npy import *
a, b, x, c, y = (load(n + ".npy")[2] for n in ("wide/a", "wide/b", "wide/x", "out/c", "out/y"))
for i in range(4):
    row = a[6 * i:6 * i + 6]
    assert abs(sum(map(float.__mul__, row, x)) - y[i]) < 1e-13
    for j in range(5):
        assert abs(sum(map(float.__mul__, row, b[j::5])) - c[5 * i + j]) < 1e-13
END
cp -r gated misspelled && mv misspelled/g.npy misspelled/gate.npy
expect 0 reference kkt_solve --in misspelled --out out
has "$out" "g: no g.npy"
has "$err" "'misspelled/gate.npy' is not read: kkt_solve knows "
has "$err" "g.npy, cu_seqlens.npy"
expect 0 reference kkt_solve --config chunk=32 --in gated --out out --json
python3 - <<'END' || die "the reference differs from the definition"
from npy import *
_, _, bits = load("gated/k.npy")
values = [struct.unpack("<f", struct.pack("<I", b << 16))[0] for b in bits]
keys = [values[16 * t:16 * t + 16] for t in range(90)]
_, _, beta = load("gated/beta.npy")
_, _, gate = load("gated/g.npy")
descr, shape, t = load("out/t.npy")
assert descr == "<f8" and shape == (1, 90, 2, 32), (descr, shape)
for head in range(2):
    rows = solve(keys, beta[head::2], gate[head::2], 32)
    for i, row in enumerate(rows):
        for c in range(32):
            assert abs(row[c] - t[(i * 2 + head) * 32 + c]) < 1e-12, (head, i, c)
END

# The result in 16 bits, judged as a user's own would be; then a spoilt one.
expect 0 reference kkt_solve --config chunk=32 --in gated --out half --dtype fp16 --json
json 'd["rel_fro"] is None and 0 < d["max_abs"] < 4.9e-4'
cp -r half whole
expect 0 reference kkt_solve --config chunk=32 --in gated --out out --compare half --json
json 'd["compared"] and d["verdict"] == "ok" and 0 < d["rel_fro"] < 4.9e-4'
python3 - <<'END' || die "spoiling the result failed"
from npy import *
descr, shape, t = load("half/t.npy")
t = list(t)
t[(20 * 2 + 1) * 32 + 7] += 0.5
save("half/t.npy", shape, t, descr)
t[(20 * 2 + 1) * 32 + 7] -= 0.5
t[(20 * 2 + 1) * 32 + 25] = 1e-3  # above the diagonal
save("fp16/t.npy", shape, t, descr)
END
expect 1 reference kkt_solve --config chunk=32 --in gated --out out --compare half/t.npy --json
json 'd["verdict"] == "wrong_result" and abs(d["max_abs"] - 0.5) < 1e-3 and d["inexact"] == 0'
has "$err" "is wrong: relative error"
has "$err" "; the largest error is t[0,20,1,7], which is "
cp fp16/t.npy gated/
expect 1 reference kkt_solve --config chunk=32 --in gated --out out --json
json 'd["verdict"] == "wrong_result" and d["inexact"] == 1 and d["rel_fro"] < 4.9e-4'
has "$err" "; the first is t[0,20,1,25], which is 0.00100040436, not 0"
# Without --out a result is judged and none is written.
rm -f out/t.npy
expect 1 reference kkt_solve --config chunk=32 --in gated --json
json 'd["compared"] and d["inexact"] == 1'
expect 0 reference kkt_solve --config chunk=32 --in gated --compare whole --json
json 'd["compared"] and d["verdict"] == "ok"'
[ ! -e out/t.npy ] || die "a result was written where none was asked for"
refuses 2 "would be replaced" reference kkt_solve --config chunk=32 --in gated --out gated
rm gated/t.npy

# Keys of length 2, all the same: 4 x 3^62, said as such.
expect 0 reference kkt_solve --in dup --out out --json
json 'd["verdict"] == "ill_conditioned" and 1e30 < d["growth"] < 2e30 and d["growth_bound"] is None'
json '"beta |k|^2 reaches 4 (|k| = 2, beta = 1 at beta[0,0,0])" in d["advice"]'
expect 0 reference kkt_solve --in dup --out out
has "$out" "normalise the keys to |k| = 1, or lower beta"
expect 0 reference kkt_solve --in lower --out out --json
json 'd["config"] == "" and d["rounding"] == 2.0**-24'
json 'd["verdict"] == "ill_conditioned" and 1e4 < d["growth"] < 1e10 and d["cond_estimate"] > 1e6'
expect 0 reference kkt_solve --config chunk=16 --in long --out out --json
json '"sequences=3" in d["problem"] and "dtype=fp16" in d["problem"] and d["verdict"] == "ok"'
python3 - <<'END' || die "chunks do not restart at each sequence, or l.npy is inverted wrongly"
from npy import *
_, shape, t = load("out/t.npy")
_, _, k = load("long/k.npy")
keys = [k[16 * i:16 * i + 16] for i in range(90)]
rows = solve(keys[:37], [0.5] * 37, [0.0] * 37, 16) + solve(keys[37:], [0.5] * 53, [0.0] * 53, 16)
assert shape == (1, 90, 1, 16)
assert max(abs(rows[i][c] - t[16 * i + c]) for i in range(90) for c in range(16)) < 1e-12
END

# One line that names the tensor and what is expected.
cp gated/* bad
refuses 2 "tensor k is missing: there is no long/../k.npy" reference kkt_solve --in long/.. --out out
# What the others' shapes then do not fit, the default's 16 key heads, is not the cause.
mkdir keyless
python3 -c 'from npy import *; save("keyless/beta.npy", (90, 4), [0.5] * 360)'
refuses 2 "tensor k is missing: there is no keyless/k.npy" reference kkt_solve --in keyless --out out
rm bad/g.npy
refuses 2 "tensor g is missing" reference kkt_solve --in bad --out out --problem gated=1
python3 - <<'END'
from npy import *
save("bad/g.npy", (1, 90, 2), [-0.5] * 100 + [0.97] + [-0.5] * 79)
save("fp16/beta.npy", (90, 3), [0.5] * 270)
END
refuses 2 "g[0,50,0] is 0.97" reference kkt_solve --in bad --out out
has "$err" "pass log g, not alpha"
cp fp16/beta.npy bad
refuses 2 "tensor g: expected shape [1,90,3], given [1,90,2]" reference kkt_solve --in bad --out out
cp gated/g.npy bad
refuses 2 "tensor beta: expected shape [1,90,2], given [90,3]" \
    reference kkt_solve --in bad --out out --problem heads_v=2
refuses 2 "read as bf16, but" reference kkt_solve --in gated --out out --problem dtype=fp16
printf 'no array' >bad/k.npy
refuses 2 "bad/k.npy" reference kkt_solve --in bad --out out
refuses 2 "--in DIR is needed" reference kkt_solve --out out
refuses 2 "--out DIR is needed" reference kkt_solve --in gated
refuses 2 "unknown kernel 'nope'; known kernels: kkt_solve" reference nope --in gated --out out
refuses 2 "chunk" reference kkt_solve --config chunk=63 --in gated --out out
refuses 2 "unknown dtype 'int8'" reference kkt_solve --dtype int8 --in gated --out out
refuses 2 "there is no none/t.npy" reference kkt_solve --in gated --out out --compare none
python3 - <<'END'
from npy import *
save("lower/l.npy", (3, 3), [1, 0, 0, .5, 1, 0, .5, .5, 1], "<f8")
END
refuses 2 "l[...,0,0] is 1, but l must be strictly lower" reference kkt_solve --in lower --out out
python3 -c 'from npy import *; save("lower/l.npy", (3, 4), [0] * 12)'
refuses 2 "tensor l: expected shape [...,C,C]" reference kkt_solve --in lower --out out

# Without a GPU `run` and `verify` say so; the fake backend serves in its place.
if ! ls /dev/nvidia0 >/dev/null 2>&1; then
    refuses 3 "NVIDIA" run kkt_solve --in gated --out out
    refuses 3 "NVIDIA" verify kkt_solve
fi
expect 0 verify kkt_solve --backend fake --arch sm90 --count 6 --json
json 'd["checked"] == 6 and d["failed"] == 0 and len({c["config"] for c in d["candidates"]}) == 6'
expect 1 verify kkt_solve --backend fake:fault=wrong --arch sm90 --count 40 --json
json '0 < d["failed"] < 40 and "wrong_result" in [c["outcome"] for c in d["candidates"]]'
refuses 2 "unknown backend 'gpu'" verify kkt_solve --backend gpu
refuses 2 "no multiple" verify kkt_solve --problem heads_k=3,heads_v=4 --backend fake --arch sm90
refuses 2 "nowhere/kkt_solve/kkt_solve.cu" verify kkt_solve --sources nowhere
refuses 2 "fake runs no device code" verify kkt_solve --sources nowhere --backend fake --arch sm90

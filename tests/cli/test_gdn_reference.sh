#!/usr/bin/env bash
# `kkttune reference` of the Gated DeltaNet families over .npy files: o and the last state against
# the recurrence, written down anew; a sequence of no tokens; styles.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || {
    echo "python3 is not installed: skipped"
    exit 0
}
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$work/cache

# Two value heads to a key head; the second of three sequences is empty.
mkdir in
python3 - <<'END' || die "making the inputs failed"
from npy import *
T, Hv, dk, dv = 40, 2, 16, 16
rng = random.Random(3)
for name, seed in (("k", 1), ("q", 2)):
    save("in/%s.npy" % name, (T, 1, dk), [x for k in unit_keys(T, dk, seed=seed) for x in k], "<f8")
save("in/v.npy", (T, Hv, dv), [rng.gauss(0, 1) for _ in range(T * Hv * dv)], "<f8")
save("in/beta.npy", (T, Hv), [rng.random() for _ in range(T * Hv)], "<f8")
save("in/g.npy", (T, Hv), [-rng.random() for _ in range(T * Hv)], "<f8")
save("in/h0.npy", (3, Hv, dk, dv), [rng.gauss(0, 1) for _ in range(3 * Hv * dk * dv)], "<f8")
save("in/cu_seqlens.npy", (4,), [0, 13, 13, T], "<i4")
END

expect 0 reference gdn_fwd --in in --out out --json
python3 - <<'END' || die "the reference differs from the recurrence"
from npy import *
T, Hv, dk, dv, cu = 40, 2, 16, 16, (0, 13, 13, 40)
k, q, v, beta, g, h0 = (load("in/%s.npy" % n)[2] for n in ("k", "q", "v", "beta", "g", "h0"))
(_, shape, o), (_, _, ht) = load("out/o.npy"), load("out/ht.npy")
assert shape == (1, T, Hv, dv)
for n in range(3):
    for h in range(Hv):
        at = (n * Hv + h) * dk * dv
        S = [list(h0[at + i * dv:at + (i + 1) * dv]) for i in range(dk)]
        for t in range(cu[n], cu[n + 1]):
            key, query = k[t * dk:(t + 1) * dk], q[t * dk:(t + 1) * dk]
            decay = math.exp(g[t * Hv + h])
            for j in range(dv):
                column = [decay * S[i][j] for i in range(dk)]
                e = beta[t * Hv + h] * (v[(t * Hv + h) * dv + j] - sum(map(float.__mul__, column, key)))
                for i in range(dk):
                    S[i][j] = column[i] + key[i] * e
                right = sum(S[i][j] * query[i] for i in range(dk)) / math.sqrt(dk)
                assert abs(right - o[(t * Hv + h) * dv + j]) < 1e-12
        assert all(abs(S[i][j] - ht[at + i * dv + j]) < 1e-12 for i in range(dk) for j in range(dv))
END

# The result is judged where it is there, and a style is any that the family has.
expect 0 reference gdn_fwd --in in --compare out --json
json 'd["verdict"] == "ok" and d["rel_fro"] < 1e-12'
refuses 2 "gdn_fwd has no style 'materialized'" reference gdn_fwd --style materialized --in in --out out
refuses 2 "tensor t is missing" reference gdn_fwd_t --in in --out out

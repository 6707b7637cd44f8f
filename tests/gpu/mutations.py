"""Makes and judges the faulty kernels of mutations.sh.

make KERNELS WORK:    a copy of the sources a mutation, WORK/NAME/, with its edits; a copy without
                      any is WORK/none/. An edit's text must occur exactly once.
verify PROGRAM WORK:  `PROGRAM verify --sources` on each copy; one line a mutation.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

PROBLEMS = {"kkt_solve": "tokens=2048,heads_k=2,heads_v=4,dk=64", "gemv": "m=77,k=1001",
            "gemm": "m=512,n=512,k=512"}
BLOCKS = "chunk=64,inverse=recursive,base=16,couple=tf32,threads=128,heads_per_block=1"
FLAT = "chunk=64,inverse=flat,base=16,couple=fp32,threads=64,heads_per_block=2"
ROW = "chunk=64,inverse=row,threads=32,heads_per_block=1"
REST = "kload=cp_async,block_pad=1,row_stride=16,transpose=0,negate_early=1,assemble_fused=1"
LARGE = "chunk=128,inverse=recursive,base=16,couple=tf32,threads=128,heads_per_block=1"
REGISTERS = ("chunk=64,inverse=recursive,couple=bf16x3,heads_per_block=2,share=key_head,mma=mma_sync,"
             "chunks_per_block=1,min_blocks=0,carveout=0,persistent=0,")
WARPS = REGISTERS + "base=8,threads=64,warps_per_head=1,store=staged"
HALVES = REGISTERS + "base=16,threads=64,warps_per_head=1,store=tma_halves"
TEAM = REGISTERS + "base=8,threads=128,warps_per_head=2,store=tma_halves"
# Persistent blocks whose T lies where the next K K^T goes, and units enough for them to go round.
AROUND = ("chunk=128,inverse=recursive,couple=fp16,base=8,heads_per_block=1,share=key_head,mma=wgmma,"
          "chunks_per_block=1,min_blocks=3,carveout=0,persistent=1,threads=128,warps_per_head=1,"
          "store=tma,kload=ldg")
MANY_UNITS = "tokens=16384,heads_k=8,heads_v=16"

# Rows of one warp; of two warps, two rows a thread; that and x in shared memory.
GEMV_WARP = "rows_per_block=4,row_threads=32,threads=128,unroll=2"
GEMV_ROWS = "rows_per_block=2,row_threads=64,threads=64,unroll=2"
GEMV_SHARED = GEMV_ROWS + ",x=shared"

# Tiles in registers; a ring of them; parts of k through memory.
GEMM_NAIVE = "bm=64,bn=64,bk=32,split_k=1,warps_m=2,warps_n=2,a_place=register,b_place=register"
GEMM_RING = ("bm=64,bn=64,bk=32,warps_m=2,warps_n=2,stages=3,swizzle=1,raster=8,min_blocks=0,"
             "split_k=")
GEMM_WHOLE = GEMM_RING + "1,store=staged"
GEMM_PARTS = GEMM_RING + "3"

KERNEL = "kkt_solve/shared_path.cuh"
GEMM_TILE = "gemm/operand_tile.cuh"
GEMM_LOOP = "gemm/mainloop.cuh"
ROW_SUMS = "gemv/row_sums.cuh"
REGISTER = "kkt_solve/register_"
PARAMETERS = "kkt_solve/parameters.cuh"
WORK = "kkt_solve/work.cuh"
COUPLING = "device/coupling.cuh"
SUBSTITUTION = "device/substitution.cuh"
BAD = ("wrong_result", "racy")

Mutation = collections.namedtuple("Mutation", "name what edits bad good family problem",
                                  defaults=((), "kkt_solve", None))

MUTATIONS = [
    Mutation("no_negation", "blocks below the diagonal are not negated", [
        (KERNEL, "const float factor = P::negate_early && coupled ? -between : between;",
         "const float factor = between;")], [BLOCKS]),
    Mutation("no_sign", "the coupling's result is not negated", [
        (KERNEL, "constexpr float sign = P::negate_early ? 1.0f : -1.0f;",
         "constexpr float sign = 1.0f;")],
        [BLOCKS + ",negate_early=0"], [BLOCKS]),
    Mutation("no_row_backup", "a row of L is overwritten while it is read", [
        (SUBSTITUTION, "x[n] -= l[d] * head[(k + d) * L::row_words + j];",
         "{ x[n] -= l[d] * head[(k + d) * L::row_words + j]; if (j < i) row[j] = x[n]; }")],
        [ROW], [BLOCKS]),
    Mutation("diagonal_kept", "L's diagonal stays instead of ones", [
        (KERNEL, "a = row > column ? a : row == column ? 1.0f : 0.0f;",
         "a = row >= column ? a : 0.0f;"),
        (KERNEL, "b = row > column + 1 ? b : row == column + 1 ? 1.0f : 0.0f;",
         "b = row >= column + 1 ? b : 0.0f;")], [ROW], [BLOCKS]),
    Mutation("upper_not_cleared", "what is above the diagonal stays from K", [
        (KERNEL, "store_sub<Lower, kRowMajor>(sub, 0.0f, 0.0f, lane);", ""),
        (KERNEL, "Lower::store_2(head + p.at[0][1], 0.0f, 0.0f);", ";")], [ROW], [BLOCKS]),
    Mutation("no_barrier_load", "K is multiplied before all of it is there", [
        (KERNEL, "    __syncthreads();\n\n    Fragment k_kt", "    Fragment k_kt")], [BLOCKS]),
    Mutation("no_barrier_tile", "L overwrites K while other warps read it", [
        (KERNEL, "__syncthreads(); // K was read by all, the tables are complete", "")],
        [LARGE]),
    Mutation("no_barrier_couple", "couplings begin before all blocks are inverted", [
        (KERNEL, "    team.sync();\n    if constexpr (P::inverse == kRecursive)",
         "    if constexpr (P::inverse == kRecursive)")], [BLOCKS]),
    Mutation("ungated", "the decay is left out of a gated problem", [
        (PARAMETERS, "static constexpr bool gated = KKT_GATED;",
         "static constexpr bool gated = false;"),
        (KERNEL, "static constexpr int tables = P::gated ? 4 : 1;",
         "static constexpr int tables = KKT_GATED ? 4 : 1;")], [BLOCKS, FLAT]),
    Mutation("no_transpose", "the right operand is taken as it is stored", [
        (COUPLING, "constexpr Order transposed = IN == kRowMajor ? kColumnMajor : kRowMajor;",
         "constexpr Order transposed = IN;")], [BLOCKS, FLAT + ",transpose=1"], [ROW]),
    Mutation("one_tile_size", "the last tile is forgotten, at chunk 128 alone", [
        (KERNEL, "static constexpr int count = side * (side + 1) / 2;",
         "static constexpr int count = side * (side + 1) / 2 - (P::chunk == 128);")],
        [LARGE], [BLOCKS, ROW]),
    Mutation("no_tail_mask", "rows past a sequence's end are written", [
        (KERNEL, "if (first_row + lane_row < w.rows)", "")], [BLOCKS, FLAT]),
    Mutation("no_load_mask", "a sequence's last chunk is one row short", [
        (WORK, "uniform(left < P::span ? left : P::span)",
         "uniform(left < P::span ? left - 1 : P::span)")], [BLOCKS]),
    Mutation("register_no_barrier_load", "warps multiply K before all of it is there", [
        (REGISTER + "load.cuh", "            async_proxy_fence();\n    }\n    __syncthreads();",
         "            async_proxy_fence();\n    }")], [WARPS]),
    Mutation("register_wrong_quarter", "the quarter below two inverted ones is the one above", [
        (REGISTER + "inverse.cuh", "a.half[0].value[2], a.half[0].value[3]",
         "a.half[1].value[0], a.half[1].value[1]")], [WARPS], [HALVES]),
    Mutation("register_no_swap", "matrices come back transposed, but not their order", [
        ("device/matrix_move.cuh", "return lane % 8 + lane / 16 * 8 + lane / 8 % 2 * 16;",
         "return lane;")], [HALVES], [WARPS]),
    Mutation("register_no_decay", "the strips between two halves do not decay", [
        (REGISTER + "team.cuh", "decay *= whole.factors.across(side + r);", ";")], [TEAM], [WARPS]),
    Mutation("register_same_columns", "both warps of a team couple the same columns", [
        (REGISTER + "team.cuh", "2 * n + (team.warp ^ n % 2)", "2 * n + n % 2")], [TEAM], [WARPS]),
    Mutation("register_no_zeros", "the quarter above the diagonal is not cleared", [
        (REGISTER + "team.cuh", "if (rank == 0)\n            clear_quarter();", "")], [TEAM], [WARPS]),
    Mutation("register_no_tile_wait", "a tile is written while it is still being sent", [
        (REGISTER + "path.cuh", "if (Layout::alone && P::store == kTmaStore && lane == 0)\n"
         "            tile_store_wait_read();", ";")], [AROUND], (), "kkt_solve", MANY_UNITS),
    Mutation("register_no_tail_mask", "rows past a sequence's end are written", [
        (REGISTER + "output.cuh", "const uint4 v = *(const uint4 *)(source + Tile::at(n / Tile::units, unit));\n"
         "            if (r < rows)",
         "const uint4 v = *(const uint4 *)(source + Tile::at(n / Tile::units, unit));")], [WARPS, TEAM]),
    Mutation("gemv_no_barrier", "sums of warps are added before all of them are there", [
        (ROW_SUMS, "        __syncthreads();\n        for (int at", "        for (int at")],
        [GEMV_ROWS], [GEMV_WARP], "gemv"),
    Mutation("gemv_no_barrier_x", "x is used before all of it is in shared memory", [
        (ROW_SUMS, "        x = shared_x(shared);\n        __syncthreads();",
         "        x = shared_x(shared);")], [GEMV_SHARED], [GEMV_ROWS], "gemv"),
    Mutation("gemv_no_edges", "what is before and behind the whole vectors is left out", [
        (ROW_SUMS, "        rows.add_edges(s, b, lane);", "        ;")],
        [GEMV_WARP, GEMV_SHARED], (), "gemv"),
    Mutation("gemv_unshifted", "x begins where vectors do, not where the row does", [
        (ROW_SUMS, "const u16 *x = s.x + b.head;", "const u16 *x = s.x;")],
        [GEMV_WARP], [GEMV_SHARED], "gemv"),
    Mutation("gemv_no_rest", "the last, incomplete step of the loop is left out", [
        (ROW_SUMS, "        rows.step<true>(x, whole + lane, b.vectors);", "        ;")],
        [GEMV_WARP, GEMV_ROWS], (), "gemv"),
    Mutation("gemv_beyond", "a row's last vector reaches into the next row", [
        (ROW_SUMS, "b.vectors = (s.k - b.head) / P::vec;",
         "b.vectors = (s.k - b.head + P::vec - 1) / P::vec;")], [GEMV_WARP], (), "gemv"),
    Mutation("gemv_half_sums", "sums are kept in the dtype", [
        (ROW_SUMS, "part[r] = fmaf(a[u][r].template value<P::bf16>(i), factor, part[r]);",
         "part[r] = unpack_fp16(pack_fp16(fmaf(a[u][r].template value<P::bf16>(i), factor, "
         "part[r]), 0.0f)).x;")], [GEMV_WARP, GEMV_ROWS], (), "gemv"),
    Mutation("gemm_no_wait", "operands are read before their copies have come", [
        (GEMM_LOOP, "if (d == P::depth - 1) {\n                    "
         "copy_group_wait<larger(kStages - 2, 0)>();", "if (d == P::depth - 1) {")], [GEMM_WHOLE, GEMM_PARTS], [GEMM_NAIVE], "gemm"),
    Mutation("gemm_slot_in_use", "copies go where operands are still read", [
        (GEMM_LOOP, "write = kStages - 1;", "write = 0;")], [GEMM_WHOLE], [GEMM_NAIVE],
        "gemm"),
    Mutation("gemm_long_step", "the last step along k goes past its end", [
        (GEMM_TILE, "return terms >= DEPTH && lines_left >= LINES;",
         "return lines_left >= LINES;")], [GEMM_WHOLE], [GEMM_NAIVE], "gemm"),
    Mutation("gemm_swapped", "matrices of the right operand change places", [
        (GEMM_TILE, "return lane_offset(!ALONG_K, lane);", "return lane_offset(ALONG_K, lane);")],
        [GEMM_WHOLE], [GEMM_NAIVE], "gemm"),
    Mutation("gemm_not_transposed", "words loaded across k are taken for words along k", [
        ("gemm/matrix.cuh", "return ALONG_K ? stored : transpose_matrix(stored);",
         "return stored;")], [GEMM_NAIVE], [GEMM_WHOLE], "gemm"),
    Mutation("gemm_last_group", "the last group of tiles is taken for a full one", [
        ("gemm/tile_order.cuh", "const int rows = left < GROUP ? left : GROUP;",
         "const int rows = GROUP;")], [GEMM_WHOLE, GEMM_PARTS], [GEMM_NAIVE], "gemm"),
    Mutation("gemm_part_left_out", "the last part of k is not added", [
        ("gemm/gemm_materialized.cu", "for (int p = 0; p < kParts; ++p) {",
         "for (int p = 0; p < kParts - 1; ++p) {")], [GEMM_PARTS], [GEMM_WHOLE], "gemm"),
]


def make(kernels, work):
    gone = []
    for mutation in [Mutation("none", "", [], [])] + MUTATIONS:
        copy = work / mutation.name
        shutil.copytree(kernels, copy)
        for name, old, new in mutation.edits:
            path = copy / name
            text = path.read_text() if path.is_file() else ""
            if text.count(old) != 1:
                gone.append(f"mutations: {mutation.name}: {text.count(old)} places instead of one "
                            f"in {name}: {old!r}")
                continue
            path.write_text(text.replace(old, new))
    if gone:
        sys.exit("\n".join(gone + ["mutations: adapt tests/gpu/mutations.py to the sources"]))
    print(f"mutations: {len(MUTATIONS)} faults put in")


def whole_config(family, config):
    """A configuration with nothing left open."""
    if family == "gemv":
        return "vec=8,keep=stream,reduce=end,min_blocks=0," + config + (
            "" if "x=" in config else ",x=global")
    if family == "gemm":
        return config
    given = dict(pair.split("=") for pair in (REST + "," + config).split(","))
    if given["inverse"] == "row":
        for idle in ("base", "couple", "block_pad", "transpose", "negate_early", "assemble_fused"):
            given.pop(idle, None)
    return ",".join(f"{key}={value}" for key, value in given.items())


def style(family, config):
    """The write style that has a configuration, where it is not the family's first."""
    if family != "gemm" or "stages=" not in config:
        return []
    return ["--style", "pipelined" if "store=" in config else "materialized"]


def verify(program, folder, family, config, problem=None):
    """Outcome and reason of one configuration with the sources of a folder."""
    done = subprocess.run(
        [program, "verify", family, "--sources", folder, "--problem", problem or PROBLEMS[family],
         "--config",
         whole_config(family, config), *style(family, config), "--count", "1", "--cache",
         folder.parent / "cache", "--json"], capture_output=True, text=True, timeout=120)
    if not done.stdout:
        return "none", done.stderr.strip()
    row = json.loads(done.stdout)["candidates"][0]
    return row["outcome"], row.get("reason") or ""


def judge(mutation, program, work):
    problems, told = [], []
    for config, wanted in [(c, BAD) for c in mutation.bad] + [(c, ("ok",)) for c in mutation.good]:
        outcome, reason = verify(program, work / mutation.name, mutation.family, config,
                                 mutation.problem)
        told.append(outcome)
        if outcome not in wanted:
            problems.append(f"    {config}: {outcome}, not {' or '.join(wanted)}: {reason}")
        elif wanted is BAD and config is mutation.bad[0]:
            told[-1] += f" ({reason[:90]})"
    return mutation, told, problems


def run(program, work):
    begin = time.monotonic()
    plan = [Mutation("none", f"{family}'s sources as they are", [], [],
                     sorted({c for m in MUTATIONS if m.family == family for c in [*m.bad, *m.good]}),
                     family) for family in PROBLEMS] + [
        Mutation("none", "the same, on many units", [], [], [AROUND], "kkt_solve", MANY_UNITS)
    ] + MUTATIONS
    workers = min(8, os.cpu_count() or 1)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for mutation, told, problems in pool.map(lambda m: judge(m, program, work), plan):
            failed += bool(problems)
            print(f"mutations: {'FAILED' if problems else 'found' if mutation.bad else 'right'} "
                  f"{mutation.name}: {mutation.what}: {', '.join(told)}", flush=True)
            print(*problems, sep="\n", end="\n" if problems else "")
    print(f"mutations: {len(plan) - failed} of {len(plan)} as expected, "
          f"{time.monotonic() - begin:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        run(sys.argv[2], pathlib.Path(sys.argv[3]))

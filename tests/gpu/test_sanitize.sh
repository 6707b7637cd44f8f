#!/bin/sh
# What sanitize.sh itself must notice, with stand-ins for the GPU and the sanitizer: lists that name
# nothing or nothing known, findings, and a tool that does not start after one that did.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
printf '#!/bin/sh\n' >"$work/bin/nvidia-smi"
# Finds $FOUND things, $STARTS times; then it writes nothing.
cat >"$work/bin/compute-sanitizer" <<'STAND_IN'
#!/bin/sh
echo run >>"$RUNS"
[ "$(wc -l <"$RUNS")" -le "$STARTS" ] || exit 1
echo "========= ERROR SUMMARY: $FOUND errors" >log
echo '{"candidates": []}'
STAND_IN
chmod +x "$work/bin/nvidia-smi" "$work/bin/compute-sanitizer"
export KKTTUNE_PROGRAM=/bin/true PATH="$work/bin:$PATH" RUNS="$work/runs" STARTS=100 FOUND=0

# expect CODE RUNS TEXT [NAME=VALUE...]: how the script must end, how often a tool has run by then,
# and what it says.
expect() {
    code=$1 runs=$2 text=$3
    shift 3
    : >"$RUNS"
    got=0
    env "$@" "$here/sanitize.sh" >"$work/out" 2>&1 || got=$?
    if [ "$got" -ne "$code" ] || [ "$(wc -l <"$RUNS")" -ne "$runs" ] || ! grep -qF -- "$text" "$work/out"; then
        echo "test_sanitize: $*: exit code $got instead of $code, $(wc -l <"$RUNS") runs, '$text':"
        cat "$work/out"
        exit 1
    fi
}

expect 2 0 "KKT_GPU_TOOLS: 'initcheck' is none of" KKT_GPU_FAMILIES=gdn_wu KKT_GPU_TOOLS="memcheck initcheck"
expect 2 0 "KKT_GPU_FAMILIES: 'gdn' is none of" KKT_GPU_FAMILIES="gdn_wu gdn"
expect 2 0 "KKT_GPU_TOOLS names nothing" KKT_GPU_TOOLS=" "
expect 2 0 "KKT_GPU_FAMILIES names nothing" KKT_GPU_FAMILIES=
expect 0 4 "sanitize: passed" KKT_GPU_FAMILIES=gdn_wu KKT_GPU_TOOLS="memcheck synccheck"
expect 1 2 "1 findings in 1 summaries" KKT_GPU_FAMILIES=gdn_wu KKT_GPU_TOOLS=memcheck FOUND=1
expect 1 2 "memcheck said nothing; exit code 1" KKT_GPU_FAMILIES=gdn_wu KKT_GPU_TOOLS=memcheck STARTS=1
echo "test_sanitize: passed"

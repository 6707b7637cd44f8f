#!/usr/bin/env bash
# Help, version, bad usage and unwritable output: exit codes and lines.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 --version
[[ $out =~ ^kkttune\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || die "unexpected version"
expect 0 list --version
has "$out" "kkttune "
expect 0 --help
has "$out" "usage: kkttune"
has "$out" "--arch"
[ -z "$err" ] || die "help belongs on standard output"
commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$out")
[ "$(wc -w <<<"$commands")" -ge 3 ] || die "too few commands listed"
for command in $commands; do
    expect 0 "$command" --help
    has "$out" "usage: kkttune $command"
    expect 0 "$command" --no-such-option --help # help is always given
    refuses 2 "--no-such-option" "$command" --no-such-option
    has "$err" "--help" # lists what there is
    expect 0 "$command" --version
done

# With a kernel's name: its tables, wherever they mean something.
expect 0 explain gemm --help
has "$out" "usage: kkttune explain"
has "$out" "problem keys of gemm:"
has "$out" "nn, nt, tn, tt; default nn"
has "$out" "1 to 4194304; default 4096"
has "$out" "parameters of gemm, style warp_specialized:"
has "$out" "cooperative, ping_pong; default cooperative"
has "$out" "default 0; has an effect where routine is lt_matmul"
[[ $out != *"files of gemm"* ]] || die "explain reads no files"
expect 0 reference gemm --help
has "$out" "c.npy  output, fp16 [4096, 4096]"
[[ $out != *"input that may be left out"* ]] || die "no file of gemm may be left out"
expect 0 reference gdn_fwd_t --help
has "$out" "beta.npy  input, fp32 ["
has "$out" "h0.npy  input that may be left out, fp32 ["
has "$out" "ht.npy  output, fp32 ["
expect 0 lookup --arch sm90 kkt_solve --help
has "$out" "problem keys of kkt_solve:"
[[ $out != *"parameters of"* ]] || die "a look-up takes no configuration"
for arguments in "list gemm" "tune gdn_t" "explain gem"; do
    # shellcheck disable=SC2086 # words
    expect 0 $arguments --help
    [[ $out != *"problem keys of"* ]] || die "'$arguments' names no kernel"
done

expect 2
has "$err" "usage: kkttune"
[ -z "$out" ] || die "usage belongs on standard error here"
refuses 2 "unknown command 'nonsense'" nonsense
has "$err" "list"
refuses 2 "'--no-such-option'" --no-such-option
refuses 2 "--json is given twice" list --json --json
refuses 2 "--json takes no value" list --json=yes
refuses 2 "--threads needs a value" occupancy --arch sm90 --threads
refuses 2 "--threads needs a value" occupancy --threads --regs 32
refuses 2 "--arch is given twice" occupancy --arch sm90 --arch=sm80
refuses 2 "'kernels'" list archs kernels
refuses 2 "unknown list 'gpus'" list gpus
refuses 2 "unknown budget key 'bananas'; known: evals, seconds" tune kkt_solve --arch sm90 --budget bananas
refuses 2 "'5' names no budget key; write evals=5 or seconds=5" tune kkt_solve --arch sm90 --budget 5
refuses 2 "'h200' is a device of sm90: --arch sm90 --device h200" tune kkt_solve --arch h200
refuses 2 "an operand of kkttune list is empty" list ""
refuses 2 "an operand of kkttune db is empty" db info ""
for option in --out --db --cache --arch --seed --log; do
    refuses 2 "option $option has an empty value" tune kkt_solve "$option" ""
    refuses 2 "option $option has an empty value" tune kkt_solve "$option="
done
expect 0 lookup kkt_solve --arch sm90 --problem "" # all keys at their defaults
has "$err" "no kkttune.db in this folder: the model answers; 'kkttune tune kkt_solve --arch sm90'"
[ "$(find . -mindepth 1 ! -name '.out' ! -name '.err')" = "" ] || die "files were left behind"
refuses 2 "unknown list '--json'" list -- --json
refuses 2 "unknown command '?[31m'" $'\e[31m'

expect 0 list archs --json
json 'd["schema"] == "kkttune.list/1" and "sm90" in [a["name"] for a in d["archs"]]'
expect 0 list --json archs,kernels
json 'set(d) == {"schema", "archs", "kernels"} and "kkt_solve" in [k["name"] for k in d["kernels"]]'
expect 0 list
for topic in archs devices kernels styles strategies backends reports; do
    has "$out" "$topic:"
done

# A refused command makes nothing: neither a database nor a folder nor a log.
mkdir refused && cd refused || exit 1
tune=(tune kkt_solve --arch sm90 --problem tokens=8192)
refuses 2 "unknown fault 'zzz'" "${tune[@]}" --backend fake:fault=zzz
refuses 2 "evals" "${tune[@]}" --backend fake --budget evals=0
echo "no database" >../text.db
refuses 2 "text.db" "${tune[@]}" --backend fake --db ../text.db --log run.jsonl
refuses 3 "cannot write the log" "${tune[@]}" --backend fake --log no/such/run.jsonl
refuses 3 "; --out names another" "${tune[@]}" --backend fake --out ../text.db
try env KKTTUNE_CUDA=/nowhere "$kkttune" "${tune[@]}" --backend cuda --gpu 1023
[ "$code" -ne 0 ] || die "there can be no GPU number 1023"
refuses 2 "there is no" reference kkt_solve --in no --out deep/out
[ "$(find . -mindepth 1)" = "" ] || die "files were left behind: $(find .)"
cd .. || exit 1

# Where there is no GPU, only what can go on without one says so.
export CUDA_VISIBLE_DEVICES=
refuses 3 "to go on without a GPU leave --backend out" "${tune[@]}" --backend cuda
refuses 3 "to go on without a GPU leave --gpu out" "${tune[@]}" --gpu 0
for command in verify "run --in . --out o"; do
    # shellcheck disable=SC2086 # words are wanted
    expect 3 $command kkt_solve
    [[ $err != *"without a GPU"* ]] || die "$command cannot go on without a GPU"
done
unset CUDA_VISIBLE_DEVICES

# A style's line says what it is for, where that is no matter of course.
expect 0 list
grep -q '^ *context_parallel .*too few to fill the GPU$' .out || die "when to cut sequences is not told"

# A pipeline is named as such where a kernel is needed; advice fits the command.
for command in explain ablate; do
    refuses 2 "'gdn_t' is a pipeline, not a kernel; its kernels: kkt_solve, gdn_fwd_t" \
        "$command" gdn_t --arch sm90
    [[ $err != *gdn_wu* ]] || die "kernels of others are listed"
done
for arguments in "compare no.db no.db" "db check no.db"; do
    # shellcheck disable=SC2086 # words are wanted
    refuses 2 "there is no database 'no.db'" $arguments
    [[ $err != *--db* ]] || die "$arguments has no --db to give"
done

# What cannot be written is no success.
if [ -c /dev/full ]; then
    for arguments in --help --version "list --json"; do
        code=0
        # shellcheck disable=SC2086 # words are wanted
        "$kkttune" $arguments >/dev/full 2>"$work/.err" || code=$?
        err=$(<"$work/.err")
        [ "$code" -eq 3 ] || die "a full standard output went unseen by $arguments"
        has "$err" "No space left"
    done
fi
code=0
"$kkttune" list >&- 2>"$work/.err" || code=$?
[ "$code" -eq 3 ] || die "a closed standard output went unseen"
# A reader that has seen enough ends the program without a word.
code=0
("$kkttune" --help; printf '%s' $? >"$work/.code") 2>"$work/.err" | true
[ ! -s "$work/.err" ] || die "a closed pipe gave: $(<"$work/.err")"

refuses 2 "unknown worker" --worker nonsense

# What the command-line tests share; sourced. Makes an empty folder, enters it, and removes it at
# the end. The path of the program is in $kkttune, the folder of the tests in $tests.
# shellcheck shell=bash
# shellcheck disable=SC2034 # $tests serves the scripts that source this

set -uo pipefail
kkttune=$KKTTUNE_PROGRAM
tests=$(cd -- "$(dirname -- "${BASH_SOURCE[1]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd -- "$work" || exit 1
out='' err='' code=0

die() {
    printf '%s\n' "$*" "exit code: $code" "standard output: $out" "standard error: $err" >&2
    exit 1
}

# try COMMAND...: keeps its output in $out and $err and its exit code in $code.
try() {
    code=0
    "$@" >"$work/.out" 2>"$work/.err" </dev/null || code=$?
    out=$(<"$work/.out")
    err=$(<"$work/.err")
}

# expect CODE ARGUMENT...: runs the program; the exit code must be CODE.
expect() {
    local wanted=$1
    shift
    try "$kkttune" "$@"
    [ "$code" -eq "$wanted" ] || die "kkttune $*: exit code $wanted was expected"
}

# refuses CODE TEXT ARGUMENT...: exit code CODE, nothing on standard output, and one line on
# standard error that holds TEXT.
refuses() {
    local wanted=$1 text=$2
    shift 2
    expect "$wanted" "$@"
    [ -z "$out" ] || die "kkttune $*: nothing was expected on standard output"
    [ "$(wc -l <"$work/.err")" -eq 1 ] || die "kkttune $*: one line of error was expected"
    has "$err" "$text"
}

# has TEXT PART: TEXT holds PART.
has() {
    [[ $1 == *"$2"* ]] || die "'$2' was expected in: $1"
}

# json PYTHON: $out is JSON, and the Python expression over it (named d) is true.
json() {
    python3 -c 'import json, sys
d = json.loads(sys.stdin.read())
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1" <"$work/.out" || die "not true of the JSON: $1"
}

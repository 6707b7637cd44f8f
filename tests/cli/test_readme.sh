#!/usr/bin/env bash
# The README's commands do what it says: each of its lines that call ./kkttune is run, on the fake
# backend and with a small budget where it would measure.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache

ran=()
while read -r line; do
    line=${line%%#*}
    line=${line%%&&*}
    [[ $line != *" ... "* ]] || continue # a template
    read -ra words <<<"${line/evals=200/evals=10}"
    command=${words[1]}
    case $command in
        --arch) words+=(--backend fake:seed=1 --budget evals=6) ;;
        tune) words+=(--backend fake:seed=1) ;;
        ablate) words+=(--backend fake:seed=1 --chunk 64) ;;
        compare) cp kkttune.db before.db && cp kkttune.db after.db ;;
    esac
    [[ $command != tune || $line == *--budget* ]] || words+=(--budget seconds=2)
    expect 0 "${words[@]:1}"
    [ -n "$out" ] || die "${words[*]}: something was expected on standard output"
    ran+=("$command")
done < <(sed -n 's/^    \(\.\/kkttune .*\)/\1/p' "$tests/../../README.md")

for command in --arch list model occupancy explain tune ablate compare lookup --version; do
    [[ " ${ran[*]} " == *" $command "* ]] || die "the README shows no '$command'; it has: ${ran[*]}"
done

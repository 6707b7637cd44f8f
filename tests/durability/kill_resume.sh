#!/bin/sh
# Kills runs of the main program at random moments and lets others go on from what is left.
#
#   KKTTUNE_PROGRAM=build/cli/kkttune tests/durability/kill_resume.sh [KILLS [SECONDS [SEED]]]
#
# ends after KILLS (default 200) or after SECONDS (default: no limit), whichever comes first.
set -eu
program=$(readlink -f "${KKTTUNE_PROGRAM:?the program to test}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$(dirname "$0")/kill_resume.py" "$program" "$work" "${1:-200}" "${2:-0}" "${3:-1}"

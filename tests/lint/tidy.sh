#!/usr/bin/env bash
# Static analysis of a folder's C sources by .clang-tidy. Arguments: run-clang-tidy, the build folder
# that holds compile_commands.json, the folder.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
"$1" -quiet -p "$2" -j 1 "$PWD/$3/.*\.c\$" >"$log" 2>/dev/null || code=$?
checked=$(grep -c '^clang-tidy' "$log" || true)
grep -v '^clang-tidy' "$log" || true
echo "$checked files checked"
[ "$checked" -gt 0 ] || exit 1 # an empty list would pass unseen
exit "$code"

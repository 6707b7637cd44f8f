#!/usr/bin/env bash
# The shell scripts parse, and shellcheck, where it is installed, finds nothing in them.
set -euo pipefail

mapfile -d '' files < <(find kkttune check .ci/run scripts tests -type f \
    \( -name '*.sh' -o -name kkttune -o -name check -o -name run \) -print0)
for file in "${files[@]}"; do
    bash -n "$file"
done
if command -v shellcheck >/dev/null; then
    shellcheck -x -P SCRIPTDIR "${files[@]}"
fi
for file in kkttune check .ci/run; do
    [ -x "$file" ] || {
        echo "$file is not executable"
        exit 1
    }
done
echo "${#files[@]} scripts checked"

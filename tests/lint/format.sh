#!/usr/bin/env bash
# All C sources are as clang-format writes them. Argument: clang-format.
set -euo pipefail

mapfile -d '' files < <(find base cli db include kernels lib model reports tests tuner \
    -name '*.[ch]' -print0)
[ "${#files[@]}" -gt 20 ] # an empty list would pass unseen
if ! "$1" --dry-run -Werror "${files[@]}"; then
    echo "run: clang-format -i on the files named above"
    exit 1
fi

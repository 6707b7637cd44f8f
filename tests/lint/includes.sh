#!/usr/bin/env bash
# Who may include whom (docs/architecture.md, "Dependencies"). Run in the source folder, or with
# another one as argument. First tries itself on a small tree with one fault of each kind.
set -euo pipefail

declare -A may=(
    [base]="base kkttune"
    [db]="db base kkttune"
    [model]="model base kkttune"
    [kernels]="kernels model base kkttune"
    [tuner]="tuner kernels model db base kkttune"
    [reports]="reports kernels model db base kkttune"
    [lib]="lib reports tuner kernels model db base kkttune"
    [cli]="cli reports tuner kernels model db base kkttune"
)

# The private headers: pattern of the name, pattern of the files that may include it.
private=(
    '(cuda|nvrtc|cupti|nvml|nvperf|cublas)[a-z_0-9]*\.h|cuda/.*|driver_types\.h'
    'tuner/(compile|measure)/.*'
    'sqlite3\.h' 'db/store[a-z_]*\.[ch]'
    '(cjson/)?cJSON\.h' 'base/json\.c'
    '(md5|sha|sha2)\.h' 'base/sha256\.c'
)

# Prints a line for each include that is not allowed in the tree $1.
faults() {
    local tree=$1 file header folder first i
    while IFS=: read -r file header; do
        folder=${file%%/*}
        if [[ $header == \"* ]]; then
            header=${header//\"/}
            first=${header%%/*}
            if [[ $header == kkttune.h && $folder == lib ]]; then
                continue # the public header, under the name its users include
            elif [[ $header != */* ]]; then
                echo "$file: include \"$header\" by its path from the source folder"
            elif [[ " ${may[$folder]} " != *" $first "* ]]; then
                echo "$file: $folder may not include $header; allowed: ${may[$folder]}"
            fi
            continue
        fi
        header=${header//[<>]/}
        for ((i = 0; i < ${#private[@]}; i += 2)); do
            if [[ $header =~ ^(${private[i]})$ ]] && ! [[ $file =~ ^(${private[i + 1]})$ ]]; then
                echo "$file: <$header> belongs in ${private[i + 1]} alone"
            fi
        done
    done < <(cd "$tree" && grep -rE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include' \
        "${!may[@]}" 2>/dev/null | sed -E 's/^([^:]*):[^"<]*(["<][^">]*[">]).*/\1:\2/')
}

self_test() {
    local tree found folder
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' RETURN
    for folder in "${!may[@]}"; do
        mkdir -p "$tree/$folder"
        : >"$tree/$folder/empty.c"
    done
    mkdir -p "$tree/tuner/compile"
    printf '%s\n' '#include "base/text.h"' '#include <sqlite3.h>' >"$tree/db/store.c"
    printf '%s\n' '#include <nvrtc.h>' >"$tree/tuner/compile/a.c"
    [ -z "$(faults "$tree")" ] || return 1
    printf '%s\n' '#include "model/arch.h"' '#include <cJSON.h>' >"$tree/base/bad.c"
    printf '%s\n' '  # include <cuda.h>' '#include "tuner/x.h"' '#include "x.h"' >"$tree/reports/bad.h"
    printf '%s\n' '#include <sqlite3.h>' >"$tree/db/merge.c"
    found=$(faults "$tree" | wc -l)
    [ "$found" -eq 6 ]
}

self_test || {
    echo "the check does not find the faults it is made for"
    exit 1
}
found=$(faults "${1:-.}")
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    exit 1
fi

#!/bin/sh
# Wrong kernels on purpose, on the GPU: a copy of the device sources with one fault must not pass
# the gate. KKTTUNE_KERNELS is the folder of the sources (kernels/ of the source tree, or
# share/kkttune/kernels of an installation); default: the source tree's. The faults are put in
# first, so that a fault whose place is gone fails the test without a GPU too. Exit 77: no GPU here.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
kernels=$(readlink -f "${KKTTUNE_KERNELS:-$here/../../kernels}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 "$here/mutations.py" make "$kernels" "$work"
nvidia-smi --query-gpu=compute_cap --format=csv,noheader >/dev/null 2>&1 || {
    echo "mutations: no GPU here, skipped"
    exit 77
}
program=$(readlink -f "${KKTTUNE_PROGRAM:?the program to test}")
python3 "$here/mutations.py" verify "$program" "$work"

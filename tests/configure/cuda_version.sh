#!/usr/bin/env bash
# Headers of a CUDA before 13.0, and headers without a version, are refused when the build is
# configured; those the build uses are taken.
set -euo pipefail
cmake=$1 source=$2 headers=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/project" "$work/old" "$work/old/include" "$work/new"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(headers C)
include($source/cmake/dependencies.cmake)
END
ln -s "$headers" "$work/new/include"

# configure HOME: configures the project in an empty folder; what it says is in $said.
configure() {
    rm -rf "$work/build"
    code=0
    said=$("$cmake" -S "$work/project" -B "$work/build" "-DKKT_CUDA_HOME=$1" 2>&1 | tr -s ' \n' ' ') ||
        code=$?
}
fail() {
    printf '%s\n' "$1; exit code $code: $said" >&2
    exit 1
}

touch "$work/old/include/nvrtc.h"
configure "$work/old"
[ "$code" -ne 0 ] || fail "headers without a version were taken"
echo '#define CUDA_VERSION 12090' >"$work/old/include/cuda.h"
configure "$work/old"
[ "$code" -ne 0 ] || fail "headers of CUDA 12.9 were taken"
[[ $said == *"CUDA 13.0 or later"*"CUDA_VERSION '12090'"* ]] || fail "the version is not named"
configure "$work/new"
[ "$code" -eq 0 ] || fail "the build's own headers were refused"

# Sourced by `kkttune` and `check`: installs what is missing, finds CUDA, configures and builds.
# Everything it says goes to standard error. The caller sets $root to the source folder.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the lists serve the callers, $root comes from them

# Exit codes of the program (include/kkttune/status.h).
readonly failed=1 environment=3

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

stop() {
    local code=$1
    shift
    say "$*"
    exit "$code"
}

# ---- packages ----

# Each requirement: the test that it is there, the Debian package that brings it, and what for.
have() {
    case $1 in
        libc) printf '#include <stdio.h>\n' | cc -E - >/dev/null 2>&1 ;;
        pkg:*) pkg-config --exists "${1#pkg:}" 2>/dev/null ;;
        file:*) [ -f "${1#file:}" ] ;;
        pip) python3 -m pip --version >/dev/null 2>&1 ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

build_needs=(
    "cc gcc compiler"
    "libc libc6-dev C-library"
    "cmake cmake build-description"
    "ninja ninja-build build"
    "pkg-config pkg-config finding-libraries"
    "pkg:sqlite3 libsqlite3-dev database"
    "pkg:libcjson libcjson-dev JSON"
    "pkg:libmd libmd-dev hashes"
    "file:/usr/share/javascript/chart.js/chart.min.js libjs-chart.js plots-of-the-report"
)
check_needs=(
    "pkg:cmocka libcmocka-dev unit-tests"
    "clang clang second-compiler"
    "clang-format clang-format format-check"
    "clang-tidy clang-tidy static-analysis"
    "python3 python3 tests-of-exports"
    "g++ g++ exported-headers-in-C++"
)
wheel_needs=(
    "pip python3-pip fetching-CUDA-wheels"
)

# Runs apt-get as root, by sudo where that is needed and there.
apt() {
    local run=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends "$@")
    if [ "$(id -u)" -ne 0 ]; then
        run=(sudo "${run[@]}")
    fi
    "${run[@]}" </dev/null >&2
}

# require NEED...: installs the packages of those that are not met.
require() {
    local need test package purpose packages=() why=()
    for need in "$@"; do
        read -r test package purpose <<<"$need"
        if ! have "$test"; then
            packages+=("$package")
            why+=("$package (${purpose//-/ })")
        fi
    done
    if [ ${#packages[@]} -eq 0 ]; then
        return
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        stop $environment "missing, and there is no apt-get to install them with: ${why[*]}"
    fi
    if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
        if ! command -v sudo >/dev/null 2>&1 || [ ! -t 2 ]; then
            stop $environment "run as root first: apt-get install --no-install-recommends ${packages[*]}"
        fi
    fi
    say "installing with apt-get: ${why[*]}"
    if ! apt install "${packages[@]}" 2>/dev/null; then
        apt update || true
        apt install "${packages[@]}" || stop $environment "apt-get could not install ${packages[*]}"
    fi
    hash -r
}

# ---- CUDA ----

# Whether a folder holds what is used of CUDA 13.0 or later.
is_cuda() {
    local version
    [ -f "$1/include/nvrtc.h" ] && [ -f "$1/include/cuda.h" ] || return 1
    compgen -G "$1/lib*/libnvrtc.so*" >/dev/null || return 1
    version=$(sed -n '/^#define CUDA_VERSION /{s/[^0-9]*//gp;q}' "$1/include/cuda.h")
    [ "${version:-0}" -ge 13000 ]
}

fetch_wheels() {
    local target=$root/.kkttune/cuda work=$root/.kkttune/wheels
    require "${wheel_needs[@]}"
    say "fetching CUDA 13.0's headers, NVRTC and CUPTI from PyPI (about 103 MB) into .kkttune/cuda:" \
        "no toolkit of 13.0 or later was found"
    rm -rf "$work" "$target"
    mkdir -p "$work" || stop $environment "cannot write to $root/.kkttune"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
        --only-binary=:all: --require-hashes \
        --target "$work" -r "$root/cmake/cuda-wheels.txt" </dev/null >&2 ||
        stop $environment "the CUDA wheels could not be fetched; install a CUDA toolkit of 13.0" \
            "or later, or name its folder in KKTTUNE_CUDA"
    mv "$work/nvidia/cu13" "$target" && rm -rf "$work"
}

# Sets KKTTUNE_CUDA: as the caller says, else a toolkit, else the private folder of wheels.
find_cuda() {
    local folder
    if [ -n "${KKTTUNE_CUDA:-}" ]; then
        is_cuda "$KKTTUNE_CUDA" ||
            stop $environment "KKTTUNE_CUDA=$KKTTUNE_CUDA holds no CUDA of 13.0 or later"
        return
    fi
    for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-*; do
        if [ -n "$folder" ] && is_cuda "$folder"; then
            KKTTUNE_CUDA=$folder
            return
        fi
    done
    KKTTUNE_CUDA=$root/.kkttune/cuda
    is_cuda "$KKTTUNE_CUDA" || fetch_wheels
}

# ---- build ----

# quietly LOG COMMAND...: runs it with its output in LOG; on failure shows what matters of it.
quietly() {
    local log=$1
    shift
    if "$@" >"$log" 2>&1 </dev/null; then
        return
    fi
    # Without ninja's progress, and without the command line that follows "FAILED:".
    awk '/^FAILED: / { getline; next } !/^(\[[0-9]+\/[0-9]+\]|-- |ninja: )/' "$log" >&2
    return $failed
}

# configure FOLDER OPTION...: where the folder is new, CUDA has moved or an option has changed. A
# folder that came along with a copied source tree would build the old tree: it starts afresh.
configure() {
    local build=$1 wanted
    shift
    wanted="$root $KKTTUNE_CUDA $*"
    if [ -f "$build/build.ninja" ] && [ "$(cat "$build/configured" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
        rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles" "$build/build.ninja"
    fi
    quietly "$build/configure.log" cmake -S "$root" -B "$build" -G Ninja -U KKT_CUDA_INCLUDE \
        -DKKT_CUDA_HOME="$KKTTUNE_CUDA" "$@" ||
        stop $failed "configuring failed; the lines above say why (all: $build/configure.log)"
    printf '%s' "$wanted" >"$build/configured"
}

# build FOLDER TARGET...
build() {
    local build=$1
    shift
    quietly "$build/build.log" cmake --build "$build" --target "$@" ||
        stop $failed "building failed; the lines above say why (all: $build/build.log)"
}

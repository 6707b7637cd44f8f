#!/usr/bin/env bash
# The script `kkttune` around a small program in place of the real one: arguments, rebuilding,
# failing builds, copied trees, and the installation of what is missing with a pretended apt-get.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

source=$(cd -- "$tests/../.." && pwd)
mkdir -p tree/{base,cli,cmake,db,include,kernels,lib,model,reports,tuner} cuda/{include,lib} away
cp -r "$source/kkttune" "$source/scripts" tree/
cat >tree/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(small C)
if(NOT KKT_CUDA_HOME)
  message(FATAL_ERROR "KKT_CUDA_HOME is missing")
endif()
add_subdirectory(cli)
END
cat >tree/cli/CMakeLists.txt <<'END'
add_executable(kkttune main.c)
add_library(kkttune_lib SHARED part.c)
install(TARGETS kkttune kkttune_lib RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
END
echo 'int part(void) { return 0; }' >tree/cli/part.c
write_main() {
    cat >"$1/cli/main.c" <<END
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    printf("$2 %s", getenv("KKTTUNE_CUDA"));
    for (int i = 1; i < argc; i++)
        printf("|%s", argv[i]);
    if (fcntl(9, F_GETFD) != -1)
        printf("|the build's lock is held");
    return argc > 1 && strcmp(argv[1], "seven") == 0 ? 7 : 0;
}
END
}
write_main tree one
echo '#define CUDA_VERSION 12090' >cuda/include/cuda.h
touch cuda/include/nvrtc.h cuda/lib/libnvrtc.so.13
export KKTTUNE_CUDA=$work/cuda
unset CC CFLAGS

cd away || exit 1
try ../tree/kkttune
[ "$code" -eq 3 ] || die "a toolkit older than 13.0 must count as none"
has "$err" "no CUDA of 13.0 or later"
echo '#define CUDA_VERSION 13000' >../cuda/include/cuda.h

try ../tree/kkttune "a  b" '*' --out=x ''
[ "$code" -eq 0 ] || die "the first call failed"
[ "$out" = "one $work/cuda|a  b|*|--out=x|" ] || die "arguments or standard output were changed"

# What the script built can be installed as it is.
try cmake --install ../tree/build --prefix "$work/installed"
[ "$code" -eq 0 ] || die "cmake --install failed after the script's build"
[ -x "$work/installed/bin/kkttune" ] || die "the program was not installed"
[ -e "$work/installed/lib/libkkttune_lib.so" ] || die "the library was not installed"

ln -s ../tree/kkttune link
try ./link seven
[ "$code" -eq 7 ] || die "the exit code was changed"
[ -z "$err" ] || die "a call with nothing to build must say nothing"
[ "$(ls)" = link ] || die "the caller's folder was written to"

begun=${EPOCHREALTIME/./}
for _ in 1 2 3; do
    ../tree/kkttune >/dev/null
done
spent=$(((${EPOCHREALTIME/./} - begun) / 3))
[ "$spent" -lt 300000 ] || die "a call with nothing to build took $spent us"

sleep 0.01
write_main ../tree two
try ../tree/kkttune
has "$out" "two "

# A call that waited for another one's build has nothing left to do, and gives the lock back.
sleep 0.01
touch ../tree/cli/main.c
exec 8>../tree/build/lock
flock 8
../tree/kkttune waited >../waited 8>&- &
sleep 0.5
[ ! -s ../waited ] || die "a call did not wait for the lock"
touch ../tree/build/stamp
exec 8>&-
wait $!
[ "$(<../waited)" = "two $work/cuda|waited" ] || die "after waiting: $(<../waited)"

cp -r ../tree ../copy
write_main ../copy three
try ../copy/kkttune
has "$out" "three "
try ../tree/kkttune
has "$out" "two "

sleep 0.01
echo 'int main(void) { return no_such_name; }' >../tree/cli/main.c
for _ in 1 2; do # a failed build does not count as one
    try ../tree/kkttune
    [ "$code" -eq 1 ] || die "a failing build must end with code 1"
    [ -z "$out" ] || die "a failing build wrote to standard output"
    has "$err" "no_such_name"
    [[ $err != *FAILED* ]] || die "only the compiler's lines were wanted"
done

# ---- installing ----
mkdir "$work/bin"
cat >"$work/bin/apt-get" <<END
#!/bin/sh
echo "apt-get \$*" >>"$work/apt.log"
case "\$*" in
    *' install '*broken*) exit 100 ;;
    *' install '*) printf '#!/bin/sh\n' >"$work/bin/no-such-tool"; chmod +x "$work/bin/no-such-tool" ;;
esac
END
printf '#!/bin/sh\nexit 1\n' >"$work/bin/sudo"
# shellcheck disable=SC2016 # the pretended id expands it
printf '#!/bin/sh\necho "$PRETENDED_ID"\n' >"$work/bin/id"
chmod +x "$work"/bin/*
cat >"$work/install" <<END
set -euo pipefail
root=$source
. "$source/scripts/prepare.sh"
require "sh dash shell" "no-such-tool \$1 some-purpose"
echo ready
END
export PATH=$work/bin:$PATH

export PRETENDED_ID=1000
try bash "$work/install" tool-package
[ "$code" -eq 3 ] || die "without root there is nothing but to say so"
[ "$(wc -l <"$work/.err")" -eq 1 ] || die "one line was expected"
has "$err" "apt-get install --no-install-recommends tool-package"
[ ! -e "$work/apt.log" ] || die "apt-get was called without root"

export PRETENDED_ID=0
try bash "$work/install" broken-package
[ "$code" -eq 3 ] || die "apt-get's failure went unseen"
has "$err" "could not install broken-package"
try bash "$work/install" tool-package
[ "$code" -eq 0 ] || die "installing failed"
has "$err" "tool-package (some purpose)"
[ "$out" = ready ] || die "installing wrote to standard output"
has "$(tail -n 1 "$work/apt.log")" "install tool-package"
rm "$work/apt.log"
try bash "$work/install" tool-package
[ "$out$err" = ready ] || die "nothing was missing any more"
[ ! -e "$work/apt.log" ] || die "apt-get was called for nothing"

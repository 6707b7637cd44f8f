#!/usr/bin/env bash
# The header of a family that is added compiles and finds its row, whatever its problem keys are
# called.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

expect 0 tune row_sum --arch sm90 --backend fake --db k.db --cache cache --out timed
expect 0 tune clash --arch sm90 --backend fake --db k.db --cache cache --out timed
expect 0 export --arch sm90 --db k.db --out timed
cat >use.c <<'C'
#include "kkttune_sm90.h"
int main(void) {
    int exact = 0;
    const kkttune_sm90_row_sum_entry *sum = kkttune_sm90_row_sum_find(65536, 1024, &exact);
    if (sum == 0 || exact != 1 || sum->problem_rows != 65536)
        return 1;
    const kkttune_sm90_clash_entry *clash = kkttune_sm90_clash_find(
        4096, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 2, &exact);
    if (clash == 0 || exact != 1 || clash->rows_per_thread != 2)
        return 2;
    /* No block has so few rows. */
    clash = kkttune_sm90_clash_find(8, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 2, &exact);
    return clash == 0 && exact == 0 ? 0 : 3;
}
C
for standard in c99 c17; do
    try "${CC:-cc}" -std=$standard -Wall -Wextra -Wpedantic -Wshadow -Werror -Itimed use.c -o use
    [ "$code" -eq 0 ] || die "the header does not compile as $standard"
    try ./use
    [ "$code" -eq 0 ] || die "the look-up is wrong"
done
if command -v g++ >use.log; then
    try g++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Wshadow -Werror -Itimed use.c -o use
    [ "$code" -eq 0 ] || die "the header does not compile as C++"
fi

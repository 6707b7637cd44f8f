#include "kernels/gemm/waves.h"

#include <stdbool.h>

#include "base/integer.h"

enum { WALKED = 1000 };

/* Of what lies between two uses, as a share of L2: below the first all survives, above the second
 * nothing. Fitted to 20 configurations of 4096 x 4096 x 4096 with waves of 22 to 56 MB, counted on
 * an H200. Its L2 has 60 MiB; the shares are of the 50 of the H100, the first device of their
 * architecture, for a footprint knows no other. */
#define SURVIVES_BELOW 0.48
#define SURVIVES_NOT_ABOVE 0.9

typedef struct interval {
    int64_t first, end;
} interval;

/* Rows of tiles from first to last, and their columns: where a wave goes on in the next group of
 * rows, from a column to the last one and again from the first. */
typedef struct wave {
    interval rows, columns[2];
    double bytes;
} wave;

static int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static interval common(interval a, interval b) {
    const interval both = {greater(a.first, b.first), lesser(a.end, b.end)};
    return both.end > both.first ? both : (interval){0, 0};
}

/* Bytes of lines of `size` tiles' edges each, of which the last one may be cut short. */
static double lines(interval i, int64_t size, int64_t all, double line_bytes) {
    return (double)(lesser(i.end * size, all) - lesser(i.first * size, all)) * line_bytes;
}

static double row_bytes(const kkt_gemm_waves *w, interval rows) {
    return lines(rows, w->height, w->m, w->line_bytes);
}

static double column_bytes(const kkt_gemm_waves *w, interval columns) {
    return lines(columns, w->width, w->n, w->line_bytes);
}

/* Where tile `index` is. */
static void place(const kkt_gemm_waves *w, int64_t index, int64_t *group, int64_t *row,
                  int64_t *column) {
    const int64_t down = kkt_divide_up(w->m, w->height), across = kkt_divide_up(w->n, w->width);
    *group = index / (w->group * across);
    const int64_t within = index - *group * w->group * across;
    const int64_t height = lesser(w->group, down - *group * w->group);
    *row = *group * w->group + within % height;
    *column = within / height;
}

/* Tiles `first` to `end`. Of a group of which it has a part of one column it has that column's
 * rows, else all. */
static wave wave_of(const kkt_gemm_waves *w, int64_t first, int64_t end) {
    const int64_t across = kkt_divide_up(w->n, w->width), down = kkt_divide_up(w->m, w->height);
    int64_t from_group, to_group, from_row, to_row, from_column, to_column;
    place(w, first, &from_group, &from_row, &from_column);
    place(w, end - 1, &to_group, &to_row, &to_column);
    const bool same = from_group == to_group;
    const bool last_column = same ? from_column == to_column : from_column == across - 1;
    const bool first_column = same ? from_column == to_column : to_column == 0;
    wave out = {.columns = {{0, across}}};
    out.rows.first = last_column ? from_row : from_group * w->group;
    out.rows.end = first_column ? to_row + 1 : lesser((to_group + 1) * w->group, down);
    if (same) {
        out.columns[0] = (interval){from_column, to_column + 1};
    } else if (to_group == from_group + 1 && to_column + 1 < from_column) {
        out.columns[0] = (interval){from_column, across};
        out.columns[1] = (interval){0, to_column + 1};
    }
    return out;
}

double kkt_gemm_survivors(double between_bytes, double l2_bytes) {
    const double share =
        (SURVIVES_NOT_ABOVE - between_bytes / l2_bytes) / (SURVIVES_NOT_ABOVE - SURVIVES_BELOW);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Bytes that both waves read. */
static double shared_bytes(const kkt_gemm_waves *w, const wave *a, const wave *b) {
    double bytes = row_bytes(w, common(a->rows, b->rows));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            bytes += column_bytes(w, common(a->columns[i], b->columns[j]));
    return bytes;
}

/* Bytes of one part of k. */
static double part_reads(const kkt_gemm_waves *w, double l2_bytes, double tile_bytes) {
    const int64_t tiles = kkt_divide_up(w->m, w->height) * kkt_divide_up(w->n, w->width);
    double read = 0;
    int64_t first = 0;
    wave before = {.bytes = 0};
    for (int walked = 0; first < tiles && walked < WALKED; walked++) {
        const int64_t end = lesser(first + w->at_once, tiles);
        wave now = wave_of(w, first, end);
        const double own = row_bytes(w, now.rows) + column_bytes(w, now.columns[0]) +
                           column_bytes(w, now.columns[1]);
        now.bytes = own + (double)(end - first) * tile_bytes;
        read += own;
        if (walked > 0)
            read -= shared_bytes(w, &before, &now) *
                    kkt_gemm_survivors((before.bytes + now.bytes) / 2, l2_bytes);
        before = now;
        first = end;
    }
    return read * (double)tiles / (double)first;
}

double kkt_gemm_wave_reads(const kkt_gemm_waves *w, double l2_bytes, double element_bytes) {
    const double once = (double)(w->m + w->n) * w->line_bytes;
    const double all = once + (double)w->m * (double)w->n * element_bytes;
    kkt_gemm_waves part = *w;
    part.line_bytes /= (double)w->parts;
    const double read =
        part_reads(&part, l2_bytes, (double)(w->height * w->width) * element_bytes) *
        (double)w->parts;
    /* Of what is small enough to stay from beginning to end nothing is read again. */
    return read > once ? once + (read - once) * (1 - kkt_gemm_survivors(all, l2_bytes)) : once;
}

#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct kkt_table {
    size_t columns, cells, capacity;
    char **cell; /* headings first, then row by row */
};

static void push(kkt_table *table, char *cell) {
    if (table->cells == table->capacity) {
        table->capacity = table->capacity ? table->capacity * 2 : 64;
        table->cell = kkt_memory_resize(table->cell, table->capacity * sizeof *table->cell);
    }
    table->cell[table->cells++] = cell;
}

kkt_table *kkt_table_open(size_t columns, const char *const *headings) {
    kkt_table *table = kkt_memory_alloc(sizeof *table);
    table->columns = columns;
    for (size_t i = 0; i < columns; i++)
        push(table, kkt_memory_strdup(headings[i]));
    return table;
}

void kkt_table_close(kkt_table *table) {
    if (!table)
        return;
    for (size_t i = 0; i < table->cells; i++)
        free(table->cell[i]);
    free(table->cell);
    free(table);
}

void kkt_table_cell(kkt_table *table, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        length = 0;
    char *cell = kkt_memory_alloc((size_t)length + 1);
    vsnprintf(cell, (size_t)length + 1, format, again);
    va_end(again);
    push(table, cell);
}

/* Characters, not bytes: continuation bytes of UTF-8 take no place. */
static size_t width_of(const char *cell) {
    size_t width = 0;
    for (; *cell; cell++)
        width += ((unsigned char)*cell & 0xC0) != 0x80;
    return width;
}

/* Numbers with a mark or unit behind them ("64 *", "3.1%", "-") count too: a column of them is
 * easier to compare when it is aligned at its right end. */
static bool looks_numeric(const char *cell) {
    if (*cell == '\0' || strcmp(cell, "-") == 0)
        return true;
    const char *start = cell + strspn(cell, "+-~<>=. ");
    if (*start < '0' || *start > '9')
        return false;
    const char *rest = start + strspn(start, "0123456789.,eE+-");
    return width_of(rest) <= 3;
}

static bool column_is_numeric(const kkt_table *table, size_t column) {
    for (size_t i = table->columns + column; i < table->cells; i += table->columns) {
        if (!looks_numeric(table->cell[i]))
            return false;
    }
    return table->cells > table->columns;
}

static void pad(FILE *out, size_t count) {
    while (count-- > 0)
        fputc(' ', out);
}

void kkt_table_print(const kkt_table *table, FILE *out) {
    size_t columns = table->columns;
    if (columns == 0)
        return;
    size_t *widths = kkt_memory_alloc(columns * sizeof *widths);
    bool *right = kkt_memory_alloc(columns * sizeof *right);
    for (size_t i = 0; i < table->cells; i++) {
        size_t width = width_of(table->cell[i]);
        if (width > widths[i % columns])
            widths[i % columns] = width;
    }
    for (size_t i = 0; i < columns; i++)
        right[i] = column_is_numeric(table, i);
    for (size_t i = 0; i < table->cells; i++) {
        size_t column = i % columns;
        bool last = column == columns - 1 || i == table->cells - 1;
        size_t gap = widths[column] - width_of(table->cell[i]);
        if (right[column])
            pad(out, gap);
        fputs(table->cell[i], out);
        if (!last)
            pad(out, (right[column] ? 0 : gap) + 2);
        else
            fputc('\n', out);
    }
    free(widths);
    free(right);
}

/* make_exports FOLDER: writes the exports of a small made-up database of an H200. */
#include "../unit/reports/fixture.h"

static void print_path(void *context, const char *path) {
    (void)context;
    puts(path);
}

int main(int argc, char **argv) {
    void *state = NULL;
    kkt_view view;
    if (argc != 2 || setup(&state) != 0) {
        fprintf(stderr, "make_exports FOLDER\n");
        return 2;
    }
    fixture *f = state;
    add_measured(f, "", "chunk=64,threads=128,inverse=recursive", 99, 100.5, 102);
    add_measured(f, "", "chunk=64,threads=64,inverse=recursive", 101, 103, 105);
    add_measured(f, "", "chunk=32,threads=128,inverse=recursive", 70, 71.25, 72);
    add_measured(f, "tokens=8192,heads_v=32", "chunk=64,threads=64,inverse=flat", 30, 31, 32);
    add_measured(f, "tokens=8192,heads_v=32,dtype=fp16", "chunk=64,threads=256,inverse=row", 30, 31,
                 32);
    int status =
        kkt_view_make(f->db, &f->freshness, f->arch, f->device, NULL, f->arena, &view, &f->error) !=
            KKT_OK ||
        kkt_report_write(&view, argv[1], "sm90", NULL, print_path, NULL, &f->error) != KKT_OK;
    if (status != 0)
        fprintf(stderr, "%s\n", f->error.message);
    return teardown(&state) != 0 || status;
}

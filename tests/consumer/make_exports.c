/* make_exports FOLDER: writes the exports of a small made-up database of an H200, and the database
 * itself as FOLDER/k.db. */
#include "../unit/reports/fixture.h"

#include "tuner/engine/freshness.h"

static void print_path(void *context, const char *path) {
    (void)context;
    puts(path);
}

#define EIGHT_UNITS "block_dv=128,service_registers=32,state_registers=208,units_per_block=8"

/* What is added from now on is of another kernel. */
static void turn_to(fixture *f, const char *kernel, kkt_style_id style) {
    if (kkt_kernel_parse(kernel, &f->kernel, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    f->variant = kkt_kernel_variant(f->kernel, style);
    kkt_variant_hash(f->variant, f->hash);
}

int main(int argc, char **argv) {
    void *state = NULL;
    kkt_view view;
    if (argc != 2 || setup(&state) != 0) {
        fprintf(stderr, "make_exports FOLDER\n");
        return 2;
    }
    fixture *f = state;
    f->sources = kkt_freshness_make(f->arena, NULL);
    add_measured(f, "", "chunk=64,threads=128,inverse=recursive", 99, 100.5, 102);
    add_measured(f, "", "chunk=64,threads=64,inverse=recursive", 101, 103, 105);
    /* Four heads at a time do not divide every problem. */
    add_measured(f, "", "chunk=32,threads=128,inverse=recursive,heads_per_block=4", 70, 71.25, 72);
    add_measured(f, "tokens=8192,heads_v=32", "chunk=64,threads=64,inverse=flat", 30, 31, 32);
    add_measured(f, "tokens=8192,heads_v=32,dtype=fp16", "chunk=64,threads=256,inverse=row", 30, 31,
                 32);
    add_measured(f, "heads_k=16,heads_v=32",
                 "chunk=16,chunks_per_block=2,couple=bf16x3,heads_per_block=8,share=value_head,"
                 "store=tma,threads=256,kload=cp_async",
                 40, 41, 42);
    /* A block takes eight heads, and not every problem has so many. */
    turn_to(f, "gdn_fwd_t", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", EIGHT_UNITS, 1600, 1601, 1602);
    add_measured(f, "tokens=8192", EIGHT_UNITS, 400, 401, 402);
    turn_to(f, "gdn_fwd_t", KKT_STYLE_FRAGMENT);
    add_measured(f, "", "", 1650, 1651, 1652);
    add_measured(f, "tokens=8192", "", 390, 391, 392);
    turn_to(f, "gemm", KKT_STYLE_WARP_SPECIALIZED);
    add_measured(f, "", "", 190, 191.5, 193);
    turn_to(f, "gemv", KKT_STYLE_FRAGMENT);
    add_measured(f, "", "", 10, 10.25, 10.5);
    int status =
        kkt_view_make(f->db, f->sources, f->arch, f->device, NULL, f->arena, &view, &f->error) !=
            KKT_OK ||
        kkt_report_write(&view, argv[1], "sm90", NULL, print_path, NULL, &f->error) != KKT_OK;
    kkt_db_close(f->db); /* its write-ahead log is then in the file */
    f->db = NULL;
    if (status == 0) {
        kkt_text data = {0};
        char *path = kkt_path_join(argv[1], "k.db");
        status = kkt_file_read(f->path, 1 << 26, &data.data, &data.length, &f->error) != KKT_OK ||
                 kkt_file_write(path, data.data, data.length, &f->error) != KKT_OK;
        free(data.data);
        free(path);
    }
    if (status != 0)
        fprintf(stderr, "%s\n", f->error.message);
    return teardown(&state) != 0 || status;
}

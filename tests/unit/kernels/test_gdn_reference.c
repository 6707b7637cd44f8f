/* The references of the Gated DeltaNet families against each other: T, W and U, states and outputs
 * chunk by chunk give what the recurrence over tokens gives, to double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gdn/chunk.h"

static const kkt_kernel *family(const char *name) {
    const kkt_kernel *kernel = NULL;
    assert_int_equal(kkt_kernel_parse(name, &kernel, NULL), KKT_OK);
    return kernel;
}

typedef struct fixture {
    kkt_values problem, config;
    int input_case;
    kkt_host_tensors all; /* every tensor met so far, by name; outputs in double */
} fixture;

static void keep(fixture *f, const kkt_host_tensor *host) {
    assert_true(f->all.count < KKT_TENSORS_MAX);
    f->all.t[f->all.count++] = *host;
}

static void drop(fixture *f, const char *name) {
    kkt_host_tensor *host = kkt_host_tensor_find(&f->all, name);
    free(host->data);
    *host = f->all.t[--f->all.count];
}

/* The inputs of gdn_fwd, and T in double. */
static void open_fixture(fixture *f, const char *problem, int64_t chunk, int input_case) {
    const kkt_kernel *kernel = family("gdn_fwd_t");
    kkt_host_tensors inputs;
    memset(f, 0, sizeof *f);
    kkt_params_defaults(&kernel->problem, &f->problem);
    assert_int_equal(kkt_params_parse(&kernel->problem, problem, &f->problem, NULL, NULL), KKT_OK);
    f->config.v[KKT_GDN_CHUNK] = chunk;
    f->input_case = input_case;
    assert_int_equal(kernel->make_inputs(&f->problem, input_case, 5, &inputs, NULL), KKT_OK);
    for (int i = 0; i < inputs.count; i++)
        if (inputs.t[i].tensor.role == KKT_TENSOR_INPUT && i != KKT_FWD_T_T)
            keep(f, &inputs.t[i]);
}

static void close_fixture(fixture *f) {
    kkt_host_tensors_free(&f->all);
}

/* A family's tensors: inputs from `f`, outputs newly made in double. */
static kkt_host_tensors tensors_of(fixture *f, const kkt_kernel *kernel) {
    kkt_tensor shapes[KKT_TENSORS_MAX];
    kkt_host_tensors list = {.count = kernel->tensors(&f->problem, &f->config, shapes)};
    for (int i = 0; i < list.count; i++) {
        list.t[i].tensor = shapes[i];
        kkt_host_tensor *known = kkt_host_tensor_find(&f->all, shapes[i].name);
        if (shapes[i].role == KKT_TENSOR_INPUT && known) {
            assert_int_equal(kkt_tensor_elements(&known->tensor), kkt_tensor_elements(&shapes[i]));
            list.t[i] = *known;
            list.t[i].tensor.role = KKT_TENSOR_INPUT;
        } else if (shapes[i].role == KKT_TENSOR_OUTPUT) {
            list.t[i].tensor.dtype = KKT_FP64;
            double *values = calloc((size_t)kkt_tensor_elements(&shapes[i]) + 1, sizeof *values);
            for (int64_t at = 0; at < kkt_tensor_elements(&shapes[i]); at++)
                values[at] = NAN;
            list.t[i].data = values;
        }
    }
    return list;
}

/* Computes every part of a family and keeps its outputs; each element must belong to one part. */
static void compute(fixture *f, const char *name) {
    const kkt_kernel *kernel = family(name);
    kkt_host_tensors list = tensors_of(f, kernel);
    const int64_t parts = kernel->part_count(&f->problem, &f->config, &list);
    for (int64_t part = 0; part < parts; part++) {
        kkt_region regions[KKT_REGIONS_MAX];
        const int count = kernel->part_regions(&f->problem, &f->config, &list, part, regions);
        int64_t size = 0;
        for (int r = 0; r < count; r++)
            size += regions[r].rows * regions[r].columns;
        double *values = calloc((size_t)size + 1, sizeof *values), *from = values;
        assert_int_equal(
            kernel->reference(&f->problem, &f->config, &list, part, values, (size_t)size, NULL),
            KKT_OK);
        if (size > 0) /* room that is too small is refused */
            assert_int_equal(kernel->reference(&f->problem, &f->config, &list, part, values,
                                               (size_t)size - 1, NULL),
                             KKT_ERR_INPUT);
        for (int r = 0; r < count; r++)
            for (int64_t i = 0; i < regions[r].rows; i++)
                for (int64_t c = 0; c < regions[r].columns; c++) {
                    double *to = (double *)list.t[regions[r].tensor].data +
                                 kkt_region_row(&regions[r], i) + c;
                    assert_true(isnan(*to));
                    *to = *from++;
                }
        free(values);
    }
    double nothing;
    assert_int_equal(
        kernel->reference(&f->problem, &f->config, &list, parts, &nothing, SIZE_MAX, NULL),
        KKT_ERR_INPUT);
    for (int i = 0; i < list.count; i++) {
        if (list.t[i].tensor.role != KKT_TENSOR_OUTPUT)
            continue;
        for (int64_t at = 0; at < kkt_tensor_elements(&list.t[i].tensor); at++)
            assert_true(isfinite(((double *)list.t[i].data)[at]));
        keep(f, &list.t[i]);
    }
}

/* T of every chunk, not rounded. */
static void make_t(fixture *f) {
    const kkt_shape s = kkt_gdn_shape(&f->problem);
    const int64_t chunk = f->config.v[KKT_GDN_CHUNK];
    kkt_host_tensor t = {.tensor = {.name = "t",
                                    .dtype = KKT_FP64,
                                    .rank = 4,
                                    .dims = {s.batch, s.length, s.heads_v, chunk}}};
    double *values = calloc((size_t)kkt_tensor_elements(&t.tensor) + 1, sizeof *values);
    double *k = calloc((size_t)(KKT_GDN_ROWS * (2 * s.dk + KKT_GDN_ROWS)), sizeof *k);
    double *transposed = k + KKT_GDN_ROWS * s.dk, *gram = transposed + KKT_GDN_ROWS * s.dk;
    static double inverse[KKT_GDN_ROWS * KKT_GDN_ROWS];
    kkt_chunk_part part;
    for (int64_t i = 0; kkt_chunk_at(&s, chunk, &f->all, i, &part); i++) {
        double beta[KKT_GDN_ROWS], decay[KKT_GDN_ROWS];
        kkt_gdn_load_rows(&s, kkt_host_tensor_find(&f->all, "k"), &part, s.heads_k,
                          kkt_shape_key_head(&s, part.head), s.dk, k);
        kkt_gdn_load_rows(&s, kkt_host_tensor_find(&f->all, "beta"), &part, s.heads_v, part.head, 1,
                          beta);
        kkt_gdn_decay(&s, kkt_host_tensor_find(&f->all, "g"), &part, decay);
        kkt_gdn_gram(k, part.rows, s.dk, transposed, gram);
        kkt_gdn_inverse(gram, beta, decay, part.rows, inverse);
        for (int64_t row = 0; row < part.rows; row++)
            for (int64_t j = 0; j < part.rows; j++) {
                const int64_t token = part.batch * s.length + part.token + row;
                const bool form = f->problem.v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA;
                values[(token * s.heads_v + part.head) * chunk + j] =
                    inverse[row * part.rows + j] * (form ? beta[j] : 1.0);
            }
    }
    free(k);
    t.data = values;
    keep(f, &t);
}

static void assert_same(fixture *f, const char *name, const kkt_host_tensor *right) {
    const kkt_host_tensor *given = kkt_host_tensor_find(&f->all, name);
    const int64_t count = kkt_tensor_elements(&right->tensor);
    double error = 0.0, size = 0.0;
    assert_int_equal(kkt_tensor_elements(&given->tensor), count);
    for (int64_t i = 0; i < count; i++) {
        const double a = ((const double *)given->data)[i], b = ((const double *)right->data)[i];
        error += (a - b) * (a - b);
        size += b * b;
    }
    assert_true(sqrt(error) <= 1e-10 * sqrt(size));
}

/* o and ht by the recurrence are kept aside while the chunks give them anew. */
static void check(const char *problem, int64_t chunk, int input_case) {
    fixture f;
    open_fixture(&f, problem, chunk, input_case);
    const int inputs = f.all.count;
    compute(&f, "gdn_fwd");
    kkt_host_tensor o = f.all.t[inputs], ht = f.all.t[inputs + 1];
    assert_string_equal(o.tensor.name, "o");
    assert_string_equal(ht.tensor.name, "ht");
    f.all.count = inputs;
    make_t(&f);
    compute(&f, "gdn_wu");
    drop(&f, "v");
    drop(&f, "beta");
    drop(&f, "t");
    compute(&f, "gdn_state");
    compute(&f, "gdn_output");
    assert_same(&f, "o", &o);
    assert_same(&f, "ht", &ht);
    free(o.data);
    free(ht.data);
    close_fixture(&f);
}

static void chunks_give_the_recurrence(void **state) {
    (void)state;
    check("batch=2,tokens=150,heads_k=1,heads_v=2,dk=32,dv=16", 32, KKT_CASE_RANDOM);
    check("sequences=5,tokens=167,heads_k=2,heads_v=4,dk=16,dv=32,t_form=t_beta", 16,
          KKT_CASE_UNEVEN);
    check("tokens=130,heads_k=1,heads_v=1,dk=64,dv=16", 64, KKT_CASE_CORRELATED);
    check("tokens=130,heads_k=1,heads_v=1,dk=64,dv=16,gated=0", 128, KKT_CASE_DUPLICATES);
    check("tokens=75,heads_k=1,heads_v=2,dk=32,dv=32", 32, KKT_CASE_ZERO_GATE); /* no h0 */
    check("tokens=75,heads_k=1,heads_v=2,dk=32,dv=32", 16, KKT_CASE_STRONG_GATE);
    check("batch=2,tokens=150,heads_k=1,heads_v=2,dk=16,dv=16", 64, KKT_CASE_STEEP_GATE);
}

/* A sequence of no tokens passes its state on, and owns a slot that nothing needs. */
static void empty_sequences(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "sequences=3,tokens=48,heads_k=1,heads_v=1,dk=16,dv=16", 16, KKT_CASE_UNEVEN);
    const int32_t *cu = kkt_host_tensor_find(&f.all, "cu_seqlens")->data;
    const float *h0 = kkt_host_tensor_find(&f.all, "h0")->data;
    assert_int_equal(cu[1], cu[2]);
    compute(&f, "gdn_fwd");
    const double *ht = kkt_host_tensor_find(&f.all, "ht")->data;
    for (int i = 0; i < 256; i++)
        assert_true(ht[256 + i] == (double)h0[256 + i]);
    drop(&f, "o");
    drop(&f, "ht");
    make_t(&f);
    compute(&f, "gdn_wu");
    drop(&f, "v");
    drop(&f, "t");
    compute(&f, "gdn_state");
    const int64_t slot = cu[1] / 16 + 1;
    const kkt_host_tensor *h = kkt_host_tensor_find(&f.all, "h");
    assert_int_equal(h->tensor.dims[0], 48 / 16 + 3);
    for (int i = 0; i < 256; i++)
        assert_true(((const double *)h->data)[slot * 256 + i] == 0.0);
    close_fixture(&f);
}

/* What is made for the chunk: T rounded, in both forms; W and U of the same k, beta and g. */
static void chunk_inputs_belong_to_the_others(void **state) {
    (void)state;
    const char *problem = "sequences=4,tokens=100,heads_k=1,heads_v=2,dk=32,dv=16,dtype=fp16";
    for (int form = 0; form < 2; form++) {
        fixture f;
        open_fixture(&f, problem, 32, KKT_CASE_UNEVEN);
        f.problem.v[KKT_GDN_T_FORM] = form;
        make_t(&f);
        const kkt_kernel *kernel = family("gdn_wu");
        kkt_host_tensors made;
        assert_int_equal(kernel->make_inputs(&f.problem, KKT_CASE_UNEVEN, 5, &made, NULL), KKT_OK);
        for (int again = 0; again < 2; again++) /* what was there is replaced */
            assert_int_equal(
                kernel->make_chunk_inputs(&f.problem, &f.config, KKT_CASE_UNEVEN, 5, &made, NULL),
                KKT_OK);
        const kkt_host_tensor *t = &made.t[KKT_WU_T];
        const double *right = kkt_host_tensor_find(&f.all, "t")->data;
        assert_int_equal(kkt_tensor_elements(&t->tensor), 100 * 2 * 32);
        for (int64_t i = 0; i < 100 * 2 * 32; i++)
            assert_true(fabs(kkt_dtype_load(t->tensor.dtype, t->data, (size_t)i) - right[i]) <=
                        0x1p-11 * fabs(right[i]) + 0x1p-24);
        kkt_host_tensors_free(&made);
        close_fixture(&f);
    }
    /* The states that W and U lead to stay as large as those of the recurrence. */
    fixture f;
    open_fixture(&f, "tokens=512,heads_k=1,heads_v=2,dk=32,dv=16", 32, KKT_CASE_RANDOM);
    const kkt_kernel *kernel = family("gdn_state");
    kkt_host_tensors made;
    assert_int_equal(kernel->make_inputs(&f.problem, KKT_CASE_RANDOM, 5, &made, NULL), KKT_OK);
    assert_int_equal(
        kernel->make_chunk_inputs(&f.problem, &f.config, KKT_CASE_RANDOM, 5, &made, NULL), KKT_OK);
    keep(&f, &made.t[KKT_STATE_W]);
    keep(&f, &made.t[KKT_STATE_U]);
    made.t[KKT_STATE_W].data = made.t[KKT_STATE_U].data = NULL;
    kkt_host_tensors_free(&made);
    compute(&f, "gdn_state");
    const kkt_host_tensor *ht = kkt_host_tensor_find(&f.all, "ht");
    double sum = 0.0;
    for (int64_t i = 0; i < 2 * 32 * 16; i++)
        sum += ((const double *)ht->data)[i] * ((const double *)ht->data)[i];
    const double size = sqrt(sum / (2 * 32 * 16));
    assert_true(size > 0.05 && size < 5.0);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_give_the_recurrence),
        cmocka_unit_test(empty_sequences),
        cmocka_unit_test(chunk_inputs_belong_to_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "golden.h"

#include <ctype.h>

#include "base/text.h"
#include "model/arch.h"
#include "model/style.h"

static void test_spellings(void **state) {
    (void)state;
    static const char *const same[] = {"sm90", "sm_90", "sm90a", "sm_90a", "90", "9.0", "SM90"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; ++i) {
        const kkt_arch *arch = kkt_arch_find(same[i]);
        assert_non_null(arch);
        assert_string_equal(arch->name, "sm90");
    }
    assert_string_equal(kkt_arch_find("10.0")->name, "sm100");
    assert_string_equal(kkt_arch_find("sm_100a")->name, "sm100");
    assert_string_equal(kkt_arch_find("sm_100f")->name, "sm100");
    assert_string_equal(kkt_arch_find("12.1")->name, "sm121");
    assert_string_equal(kkt_arch_find("7.5")->name, "sm75");
    static const char *const wrong[] = {"",       "sm",     "sm_",  "9",      "9.",
                                        ".90",    "9.00",   "sm91", "900",    "sm90b",
                                        "sm90aa", "9.0a",   " 90",  "90 ",    "1.00",
                                        "-90",    "sm__90", "9..0", "hopper", "9999999999999999999",
                                        "9.0.0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
        if (kkt_arch_find(wrong[i]))
            fail_msg("'%s' was taken for %s", wrong[i], kkt_arch_find(wrong[i])->name);
    assert_null(kkt_arch_find(NULL));
}

static void test_parse_errors(void **state) {
    (void)state;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_error err = {0};
    assert_int_equal(kkt_arch_parse("H200", &arch, &err), KKT_ERR_INPUT);
    assert_string_equal(err.message, "'H200' is a device of sm90: --arch sm90 --device h200");
    assert_int_equal(kkt_arch_parse("sm42", &arch, &err), KKT_ERR_INPUT);
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    kkt_text expected = {0};
    for (size_t i = 0; i < count; ++i)
        kkt_text_printf(&expected, "%s%s",
                        i ? ", " : "unknown architecture 'sm42'; known: ", archs[i].name);
    assert_string_equal(err.message, kkt_text_get(&expected));
    kkt_text_free(&expected);
    assert_int_equal(kkt_device_parse("h2000", kkt_arch_find("90"), &device, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "unknown device 'h2000'; known of sm90: h100, "));
    assert_non_null(strstr(err.message, "h200"));
    assert_null(strstr(err.message, "b200"));
    assert_int_equal(kkt_device_parse("b200", kkt_arch_find("90"), &device, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "device 'b200' has architecture sm100, not sm90"));
    assert_int_equal(kkt_device_parse("nvidia h200", NULL, &device, &err), KKT_OK);
    assert_string_equal(device->name, "h200");
    assert_int_equal(kkt_device_parse("H20", kkt_arch_find("90"), &device, &err), KKT_OK);
    assert_string_equal(device->name, "h20");
}

static void test_driver_names(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"NVIDIA H200", "h200"},
        {"NVIDIA H20", "h20"},
        {"NVIDIA H20-3e", "h20"},
        {"NVIDIA H100 80GB HBM3", "h100"},
        {"NVIDIA H100 PCIe", "h100-pcie"},
        {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
        {"NVIDIA A10", "a10"},
        {"NVIDIA L4", "l4"},
        {"NVIDIA L40S", "l40s"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000"},
        {"NVIDIA A10G", NULL},
        {"NVIDIA H2", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        const kkt_device *device = kkt_device_by_full_name(names[i][0]);
        if (!names[i][1]) {
            assert_null(device);
            continue;
        }
        assert_non_null(device);
        assert_string_equal(device->name, names[i][1]);
    }
    assert_null(kkt_device_by_full_name(NULL));
}

/* What every architecture row must fulfil: see docs/adding-an-architecture.md. */
static void test_arch_rows(void **state) {
    (void)state;
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    for (size_t i = 0; i < count; ++i) {
        const kkt_arch *a = &archs[i];
        char name[16], nvrtc[16];
        snprintf(name, sizeof name, "sm%d%d", a->major, a->minor);
        snprintf(nvrtc, sizeof nvrtc, "sm_%d%d", a->major, a->minor);
        assert_string_equal(a->name, name);
        assert_memory_equal(a->nvrtc_arch, nvrtc, strlen(nvrtc));
        assert_ptr_equal(kkt_arch_find(a->name), a);
        assert_ptr_equal(kkt_arch_find(a->nvrtc_arch), a);
        assert_true(strlen(a->generation) > 0 && strlen(a->cupti_chip) > 0);
        assert_true(a->max_warps_per_sm >= 32 && a->max_warps_per_sm <= 64);
        assert_true(a->max_blocks_per_sm >= 16 && a->max_blocks_per_sm <= 32);
        assert_int_equal(a->max_threads_per_block, 1024);
        assert_int_equal(a->registers_per_sm, 65536);
        assert_int_equal(a->max_registers_per_thread, 255);
        assert_int_equal(a->register_partitions, 4);
        assert_int_equal(a->register_allocation_unit, 256);
        assert_int_equal(a->smem_static_bytes, 49152);
        /* The largest block and the driver's reserve fill an SM exactly. */
        assert_int_equal(a->smem_optin_bytes + a->smem_reserved_bytes, a->smem_per_sm_bytes);
        assert_true(a->smem_per_sm_bytes <= a->l1_smem_bytes);
        assert_int_equal(a->smem_reserved_bytes, a->major >= 8 ? 1024 : 0);
        assert_true(a->bf16_flop_per_clock_sm.value >= 512 &&
                    a->fp32_flop_per_clock_sm.value >= 128);
        assert_true((a->major < 9) == (a->barriers_per_block_slot == 0));
        assert_non_null(kkt_device_first(a));
        for (size_t j = 0; j < i; ++j)
            assert_string_not_equal(archs[j].name, a->name);
    }
    assert_int_equal(kkt_arch_find("90")->smem_per_sm_bytes, 233472);
    assert_int_equal(kkt_arch_find("90")->smem_optin_bytes, 232448);
    assert_int_equal(kkt_arch_find("100")->tensor_memory_bytes, 262144);
    assert_int_equal(kkt_arch_find("121")->l1_smem_source, KKT_SOURCE_UNCONFIRMED);
}

static void test_device_rows(void **state) {
    (void)state;
    size_t count;
    const kkt_device *devices = kkt_devices(&count);
    for (size_t i = 0; i < count; ++i) {
        const kkt_device *d = &devices[i];
        assert_ptr_equal(kkt_device_by_full_name(d->full_name), d);
        const kkt_arch *arch = kkt_arch_find(d->arch);
        assert_non_null(arch);
        assert_string_equal(arch->name, d->arch);
        for (const char *c = d->name; *c; ++c)
            assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '-');
        const kkt_device *parsed;
        assert_int_equal(kkt_device_parse(d->name, arch, &parsed, NULL), KKT_OK);
        assert_ptr_equal(parsed, d);
        assert_true(d->sm_count.value >= 8 && d->sm_count.value <= 256);
        assert_true(d->clock_ghz.value > 1 && d->clock_ghz.value < 4);
        assert_true(d->hbm_gbps.value >= 200 && d->hbm_gbps.value < 20000);
        assert_true(d->l2_bytes.value >= 4e6 && d->l2_bytes.value < 1e9);
        assert_true(d->memory_gb.value >= 8);
        /* No ceiling above the peak that bounds divide by. */
        assert_true(d->copy_gbps.value < kkt_device_peak_gbps(d));
        assert_true(d->read_gbps.value < kkt_device_peak_gbps(d));
        assert_true(kkt_device_tensor_rate(d, arch).value > 0);
    }
    const kkt_device *h200 = kkt_device_by_full_name("NVIDIA H200");
    assert_int_equal(h200->l2_bytes.source, KKT_SOURCE_QUERIED);
    assert_true(h200->l2_bytes.value == 62914560);
    assert_int_equal(h200->copy_gbps.source, KKT_SOURCE_MEASURED);
    assert_string_equal(kkt_source_name(h200->copy_gbps.source), "measured");
    assert_true(kkt_device_peak_gbps(h200) > 4916 && kkt_device_peak_gbps(h200) < 4917);
    /* A tensor rate belongs to the device: an H20 has a quarter of an H100's. */
    const kkt_device *h20 = kkt_device_by_full_name("NVIDIA H20");
    assert_true(kkt_device_tensor_rate(h20, kkt_arch_find("90")).value == 1024);
    assert_true(kkt_device_tensor_rate(h200, kkt_arch_find("90")).value == 4096);
}

static void test_styles(void **state) {
    (void)state;
    size_t count;
    const kkt_style *styles = kkt_styles(&count);
    assert_int_equal(count, KKT_STYLE_COUNT);
    for (int id = 0; id < KKT_STYLE_COUNT; ++id) {
        const kkt_style *style = kkt_style_get((kkt_style_id)id);
        assert_non_null(style);
        assert_int_equal(style->id, id);
        assert_ptr_equal(kkt_style_find(style->name), style);
        assert_true(style->summary && style->first_limit && style->secondary);
        assert_true(style->latency_overlap >= 0 && style->latency_overlap <= 1);
    }
    assert_true(styles != NULL);
    assert_null(kkt_style_find("Fragment"));
    assert_null(kkt_style_find(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),    cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_driver_names), cmocka_unit_test(test_arch_rows),
        cmocka_unit_test(test_device_rows),  cmocka_unit_test(test_styles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* kkttune occupancy: blocks per SM from threads, registers and shared memory, and what stops the
 * next one. */
#include <stdio.h>

#include "base/text.h"
#include "cli/command.h"
#include "model/occupancy.h"

static const kkt_option options[] = {
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    {"--threads", "N", "threads per block, 1 to 1024 (required)"},
    {"--regs", "N", "registers per thread as allocated at launch, 1 to 255 (required)"},
    {"--smem", "N", "dynamic shared memory per block in bytes (required)"},
    {"--static-smem", "N", "static shared memory in bytes, the driver's reserve not included"},
    {"--barriers", "N", "named barriers per block, 0 to 16; 0 counts as 1"},
    KKT_OPTION_JSON,
};

static kkt_status read_integer(const kkt_args *args, const char *option, bool required, int64_t low,
                               int64_t high, int64_t *out, kkt_error *err) {
    const char *text = kkt_args_get(args, option);
    if (!text && required)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s is missing; give a number from %lld to %lld",
                        option, (long long)low, (long long)high);
    if (text && !kkt_parse_i64(text, low, high, out))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s '%.40s' is not a number from %lld to %lld",
                        option, text, (long long)low, (long long)high);
    return KKT_OK;
}

static kkt_status read_request(const kkt_args *args, kkt_occupancy_request *out, kkt_error *err) {
    const int64_t most_bytes = (int64_t)1 << 40;
    int64_t threads = 0, registers = 0, dynamic = 0, fixed = 0, barriers = 1;
    kkt_status status;
    if ((status = read_integer(args, "--threads", true, 1, 1024, &threads, err)) ||
        (status = read_integer(args, "--regs", true, 1, 255, &registers, err)) ||
        (status = read_integer(args, "--smem", true, 0, most_bytes, &dynamic, err)) ||
        (status = read_integer(args, "--static-smem", false, 0, most_bytes, &fixed, err)) ||
        (status = read_integer(args, "--barriers", false, 0, 16, &barriers, err)))
        return status;
    *out = (kkt_occupancy_request){.threads = (int)threads,
                                   .registers = (int)registers,
                                   .dynamic_smem = dynamic,
                                   .static_smem = fixed,
                                   .barriers = (int)barriers};
    return KKT_OK;
}

static void print_json(const kkt_arch *arch, const kkt_device *device,
                       const kkt_occupancy *occupancy) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.occupancy/1");
    kkt_json_add_string(root, "arch", arch->name);
    kkt_json_add_string(root, "device", device->name);
    kkt_json_add_string(root, "device_name", device->full_name);
    kkt_json_add_int(root, "blocks_per_sm", occupancy->blocks_per_sm);
    kkt_json_add_int(root, "warps_per_sm", occupancy->warps_per_sm);
    kkt_json_add_string(root, "limiter", kkt_limiter_name(occupancy->limiter));
    kkt_json *limits = kkt_json_add_object(root, "limits");
    for (int i = 0; i < KKT_OCCUPANCY_LIMITS; ++i)
        kkt_json_add_int(limits, kkt_limiter_name((kkt_limiter)i), occupancy->limits[i]);
    kkt_print_json(root);
}

static void print_text(const kkt_arch *arch, const kkt_occupancy_request *request,
                       const kkt_occupancy *occupancy) {
    printf("%s: %d threads, %d registers a thread, %lld bytes of shared memory\n", arch->name,
           request->threads, request->registers,
           (long long)(request->dynamic_smem + request->static_smem));
    printf("%d block%s per SM, %d of %d warps; the next is stopped by %s\n",
           occupancy->blocks_per_sm, occupancy->blocks_per_sm == 1 ? "" : "s",
           occupancy->warps_per_sm, arch->max_warps_per_sm, kkt_limiter_name(occupancy->limiter));
    static const char *const headings[] = {"limit", "blocks per SM"};
    kkt_table *table = kkt_table_open(2, headings);
    for (int i = 0; i < KKT_OCCUPANCY_LIMITS; ++i) {
        kkt_table_cell(table, "%s", kkt_limiter_name((kkt_limiter)i));
        kkt_table_cell(table, "%d", occupancy->limits[i]);
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    if (request->dynamic_smem + request->static_smem > arch->smem_optin_bytes)
        printf("A block of %s can have at most %d bytes of shared memory.\n", arch->name,
               arch->smem_optin_bytes);
}

static kkt_status run(const kkt_args *args, kkt_error *err) {
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_occupancy_request request = {0};
    kkt_occupancy occupancy;
    kkt_status status;
    if ((status = kkt_args_arch(args, &arch, &device, err)) ||
        (status = read_request(args, &request, err)) ||
        (status = kkt_occupancy_checked(arch, &request, &occupancy, err)))
        return status;
    if (kkt_args_has(args, "--json"))
        print_json(arch, device, &occupancy);
    else
        print_text(arch, &request, &occupancy);
    return KKT_OK;
}

extern const kkt_command kkt_cmd_occupancy;
const kkt_command kkt_cmd_occupancy = {
    .name = "occupancy",
    .operands = "",
    .summary = "blocks per SM from threads, registers and shared memory",
    .details =
        "Where a resource sets no limit of its own, the most blocks an SM can hold is shown.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};

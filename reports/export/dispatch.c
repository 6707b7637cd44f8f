/* The umbrella for fat binaries: picks among several kkttune_<arch>.h by compute capability. It
 * follows from the architecture table alone, so that the file is the same whatever was tuned. */
#include <ctype.h>
#include <stddef.h>

#include "base/version.h"
#include "reports/export/exporters.h"

static void upper(const char *text, char out[32]) {
    size_t i = 0;
    for (; text[i] != '\0' && i < 31; i++)
        out[i] = (char)toupper((unsigned char)text[i]);
    out[i] = '\0';
}

static int capability(const kkt_arch *arch) {
    return 10 * arch->major + arch->minor;
}

static const char *const head[] = {
    "/* Written by kkttune " KKT_VERSION
    ". Host code of a fat binary includes the kkttune_<arch>.h ",
    "it has, then this file:\n *\n",
    " *     #include \"kkttune_sm90.h\"\n",
    " *     #include \"kkttune_sm100.h\"\n",
    " *     #include \"kkttune_dispatch.h\"\n",
    " *     int chunk = KKTTUNE_DISPATCH(capability, KKT_SOLVE, CHUNK, 64);\n *\n",
    " * `capability` is 10 * major + minor of the device. A device takes the header of exactly "
    "its\n",
    " * capability, else the newest header of its major version below it, else the last argument. "
    "*/\n",
    "#ifndef KKTTUNE_DISPATCH_H\n#define KKTTUNE_DISPATCH_H\n\n",
};

static kkt_status render(const kkt_view *view, kkt_text *out, kkt_error *err) {
    (void)view;
    (void)err;
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        kkt_text_add(out, head[i]);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        upper(archs[i].name, name);
        kkt_text_printf(out, "#ifdef KKTTUNE_%s_H\n", name);
        kkt_text_printf(out,
                        "#define KKTTUNE_TRY_%s(capability, value, other) "
                        "((capability) >= %d && (capability) / 10 == %d ? (value) : (other))\n",
                        name, capability(&archs[i]), archs[i].major);
        kkt_text_printf(
            out, "#else\n#define KKTTUNE_TRY_%s(capability, value, other) (other)\n#endif\n", name);
    }
    /* The newest is asked first: what is above its capability falls through to the older ones. */
    kkt_text_add(out, "\n#define KKTTUNE_DISPATCH(capability, KERNEL, NAME, otherwise)");
    int last = 0x7fffffff;
    size_t open = 0;
    for (;;) {
        size_t next = count;
        for (size_t i = 0; i < count; i++)
            if (capability(&archs[i]) < last &&
                (next == count || capability(&archs[i]) > capability(&archs[next])))
                next = i;
        if (next == count)
            break;
        char name[32];
        upper(archs[next].name, name);
        kkt_text_printf(out, " \\\n    KKTTUNE_TRY_%s(capability, KKTTUNE_%s_##KERNEL##_##NAME,",
                        name, name);
        last = capability(&archs[next]);
        open++;
    }
    kkt_text_add(out, " \\\n    otherwise");
    for (; open > 0; open--)
        kkt_text_add(out, ")");
    kkt_text_add(out, "\n\n#endif\n");
    return KKT_OK;
}

const kkt_report_type kkt_report_dispatch = {
    .name = "dispatch",
    .summary = "the umbrella header: picks among several headers by compute capability",
    .file_format = "kkttune_dispatch.h",
    .render = render,
};

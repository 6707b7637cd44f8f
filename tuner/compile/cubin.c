/* The part of a cubin (an ELF file) that tells a kernel's resources. The attribute numbers of
 * .nv.info are those that `cuobjdump --dump-elf` names EIATTR_*. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "tuner/compile/compile.h"

enum {
    CUDA_MACHINE = 190, /* EM_CUDA */
    /* .nv.info attributes, */
    ATTRIBUTE_MAX_THREADS = 0x05,
    ATTRIBUTE_FRAME_SIZE = 0x11,
    ATTRIBUTE_REGISTERS = 0x2f,
    ATTRIBUTE_BARRIERS = 0x4c,
    /* and how their value is stored: in the entry's head, or behind it with a length. */
    FORMAT_BYTE = 2,
    FORMAT_HALF = 3,
    FORMAT_SIZED = 4,
    RESERVED_SINCE_SM = 90,
    RESERVED_BYTES = 1024, /* kept by the driver; ptxas counts it into .nv.shared from sm_90 on */
    NAME_BYTES = 256
};

typedef struct image {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr head;
} image;

typedef struct section {
    Elf64_Shdr head;
    char name[NAME_BYTES]; /* cut where longer */
} section;

static bool copy_out(const image *im, uint64_t at, void *out, size_t size) {
    if (at > im->size || size > im->size - at)
        return false;
    memcpy(out, im->bytes + at, size);
    return true;
}

static bool section_head(const image *im, size_t index, Elf64_Shdr *out) {
    /* shoff and the table's length are checked in open_image, so this cannot wrap. */
    return index < im->head.e_shnum &&
           copy_out(im, im->head.e_shoff + index * sizeof *out, out, sizeof *out);
}

/* The bytes of a section in the file; false where they leave it. */
static bool contents(const image *im, const Elf64_Shdr *head, const unsigned char **out) {
    if (head->sh_type == SHT_NOBITS || head->sh_offset > im->size ||
        head->sh_size > im->size - head->sh_offset)
        return false;
    *out = im->bytes + head->sh_offset;
    return true;
}

/* A string of table `table` (a section index), cut to NAME_BYTES; "" where there is none. */
static void string_at(const image *im, size_t table, uint64_t at, char out[NAME_BYTES]) {
    Elf64_Shdr head;
    const unsigned char *bytes;
    out[0] = '\0';
    if (!section_head(im, table, &head) || !contents(im, &head, &bytes) || at >= head.sh_size)
        return;
    size_t limit = (size_t)(head.sh_size - at), length = 0;
    while (length < limit && length < NAME_BYTES - 1 && bytes[at + length] != 0)
        length++;
    memcpy(out, bytes + at, length);
    out[length] = '\0';
}

static bool section_get(const image *im, size_t index, section *out) {
    if (!section_head(im, index, &out->head))
        return false;
    string_at(im, im->head.e_shstrndx, out->head.sh_name, out->name);
    return true;
}

static bool open_image(image *im, const void *cubin, size_t size) {
    im->bytes = cubin;
    im->size = size;
    const Elf64_Ehdr *head = &im->head;
    return copy_out(im, 0, &im->head, sizeof im->head) &&
           memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == ELFDATA2LSB && head->e_machine == CUDA_MACHINE &&
           head->e_shentsize == sizeof(Elf64_Shdr) && head->e_shoff <= size &&
           (size_t)head->e_shnum * sizeof(Elf64_Shdr) <= size - head->e_shoff;
}

/* ABI 8 (CUDA 13) moved the architecture one byte up in the flags. */
static unsigned architecture(const image *im) {
    unsigned flags = im->head.e_flags;
    return im->head.e_ident[EI_ABIVERSION] >= 8 ? (flags >> 8) & 0xff : flags & 0xff;
}

/* Name of symbol `index`, from the first symbol table. */
static void symbol_name(const image *im, uint32_t index, char out[NAME_BYTES]) {
    Elf64_Shdr head;
    const unsigned char *bytes;
    out[0] = '\0';
    for (size_t i = 0; section_head(im, i, &head); i++) {
        if (head.sh_type != SHT_SYMTAB || !contents(im, &head, &bytes))
            continue;
        Elf64_Sym symbol;
        if (index < head.sh_size / sizeof symbol) {
            memcpy(&symbol, bytes + index * sizeof symbol, sizeof symbol);
            string_at(im, head.sh_link, symbol.st_name, out);
        }
        return;
    }
}

/* One entry of .nv.info. `value` points at `size` bytes behind the head for sized entries. */
typedef struct attribute {
    unsigned format, number, inline_value;
    const unsigned char *value;
    size_t size;
} attribute;

static bool next_attribute(const unsigned char *bytes, size_t size, size_t *at, attribute *out) {
    if (size - *at < 4)
        return false;
    const unsigned char *head = bytes + *at;
    *out = (attribute){
        .format = head[0], .number = head[1], .inline_value = (unsigned)(head[2] | head[3] << 8)};
    *at += 4;
    if (out->format == FORMAT_SIZED) {
        if (out->inline_value > size - *at)
            return false;
        out->value = bytes + *at;
        out->size = out->inline_value;
        *at += out->size;
    }
    return true;
}

static uint32_t word(const attribute *entry, size_t index) {
    uint32_t value;
    memcpy(&value, entry->value + index * sizeof value, sizeof value);
    return value;
}

/* The file-wide section: pairs of symbol and value. */
static void read_common(const image *im, const section *at, const char *kernel,
                        kkt_cubin_info *out) {
    const unsigned char *bytes;
    if (!contents(im, &at->head, &bytes))
        return;
    attribute entry;
    char name[NAME_BYTES];
    for (size_t i = 0; next_attribute(bytes, (size_t)at->head.sh_size, &i, &entry);) {
        bool wanted = entry.number == ATTRIBUTE_REGISTERS || entry.number == ATTRIBUTE_FRAME_SIZE;
        if (!wanted || entry.format != FORMAT_SIZED || entry.size != 8)
            continue;
        symbol_name(im, word(&entry, 0), name);
        if (strcmp(name, kernel) != 0)
            continue;
        uint32_t value = word(&entry, 1);
        if (entry.number == ATTRIBUTE_REGISTERS)
            out->registers = value <= 255 ? (int)value : 0;
        else
            out->stack_bytes = value;
    }
}

/* The kernel's own section. */
static void read_kernel(const image *im, const section *at, kkt_cubin_info *out) {
    const unsigned char *bytes;
    if (!contents(im, &at->head, &bytes))
        return;
    attribute entry;
    for (size_t i = 0; next_attribute(bytes, (size_t)at->head.sh_size, &i, &entry);) {
        if (entry.number == ATTRIBUTE_BARRIERS &&
            (entry.format == FORMAT_BYTE || entry.format == FORMAT_HALF))
            out->barriers = (int)(entry.inline_value & 0xff);
        if (entry.number == ATTRIBUTE_MAX_THREADS && entry.format == FORMAT_SIZED &&
            entry.size == 12) {
            uint64_t x = word(&entry, 0), y = word(&entry, 1), z = word(&entry, 2);
            bool sane = x <= 1024 && y <= 1024 && z <= 1024 && x * y * z <= 1024;
            out->max_threads = sane ? (int)(x * y * z) : 0;
        }
    }
}

static const char *after(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

/* The name of the kernel that section `at` is the code of; NULL: of none. */
static const char *kernel_of(const section *at) {
    const char *name = after(at->name, ".text.");
    return name != NULL && *name != '\0' ? name : NULL;
}

bool kkt_cubin_lacks(const void *cubin, size_t size, const char *kernel) {
    image im;
    section at;
    if (!open_image(&im, cubin, size))
        return false;
    for (size_t i = 0; section_get(&im, i, &at); i++) {
        const char *name = after(at.name, ".text.");
        if (name != NULL && strcmp(name, kernel) == 0)
            return false;
    }
    return true;
}

static int64_t own_shared(const image *im, uint64_t size) {
    uint64_t reserve = architecture(im) >= RESERVED_SINCE_SM ? RESERVED_BYTES : 0;
    return size > reserve && size <= INT32_MAX ? (int64_t)(size - reserve) : 0;
}

/* More than a plan launches; files are hostile, and each costs a walk over all sections. */
enum { KERNELS_MAX = 32 };

static void read_one(const image *im, const char *kernel, kkt_cubin_info *out) {
    section at;
    for (size_t i = 0; section_get(im, i, &at); i++) {
        const char *info = after(at.name, ".nv.info."), *shared = after(at.name, ".nv.shared.");
        if (strcmp(at.name, ".nv.info") == 0)
            read_common(im, &at, kernel, out);
        else if (info != NULL && strcmp(info, kernel) == 0)
            read_kernel(im, &at, out);
        else if (shared != NULL && strcmp(shared, kernel) == 0)
            out->static_smem_bytes = own_shared(im, at.head.sh_size);
    }
}

/* Adds a kernel to what is told of all: the most of each, and of what bounds the launch the bounds
 * of the kernel that takes the most registers. */
static void add_kernel(kkt_cubin_info *all, const kkt_cubin_info *one) {
    const bool most = one->registers > all->registers;
    all->max_threads = most ? one->max_threads : all->max_threads;
    all->registers = most ? one->registers : all->registers;
    if (one->static_smem_bytes > all->static_smem_bytes)
        all->static_smem_bytes = one->static_smem_bytes;
    if (one->stack_bytes > all->stack_bytes)
        all->stack_bytes = one->stack_bytes;
    if (one->barriers > all->barriers)
        all->barriers = one->barriers;
}

kkt_status kkt_cubin_read(const void *cubin, size_t size, kkt_cubin_info *out, kkt_error *err) {
    image im;
    *out = (kkt_cubin_info){.cubin_bytes = (int64_t)size};
    if (!open_image(&im, cubin, size))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the compiler's output (%zu bytes) is no 64-bit CUDA ELF file", size);
    section at, any = {.name = ""};
    for (size_t i = 0, kernels = 0; kernels < KERNELS_MAX && section_get(&im, i, &at); i++) {
        const char *kernel = kernel_of(&at);
        kkt_cubin_info info = {0};
        if (kernel == NULL)
            continue;
        any = at;
        kernels++;
        read_one(&im, kernel, &info);
        add_kernel(out, &info);
    }
    if (kernel_of(&any) == NULL)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "the cubin (%zu bytes) holds no kernel", size);
    if (out->registers == 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "the cubin does not tell the registers of its kernel '%s'",
                        kernel_of(&any));
    return KKT_OK;
}

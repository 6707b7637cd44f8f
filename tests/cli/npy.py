"""Writes and reads .npy files without NumPy, and computes T = (I + L)^-1 in plain Python."""
import math
import random
import struct

CODES = {"<f2": "e", "<f4": "f", "<f8": "d", "<u2": "H", "<i4": "i", "<i8": "q"}


def save(path, shape, values, descr="<f4"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        descr, "".join("%d, " % n for n in shape))
    header = header.encode() + b" " * ((-len(header) - 11) % 64) + b"\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        out.write(struct.pack("<%d%s" % (len(values), CODES[descr]), *values))


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<H", data, 8)
    header = eval(data[10:10 + length])  # a file this test's own program wrote
    code = CODES[header["descr"]]
    count = (len(data) - 10 - length) // struct.calcsize(code)
    return header["descr"], header["shape"], struct.unpack_from("<%d%s" % (count, code), data,
                                                                10 + length)


def bf16(value):
    """The bits of a value cut to bf16 (the test only needs some bf16 values, not the nearest)."""
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def unit_keys(rows, dk, length=1.0, same=False, seed=1):
    rng = random.Random(seed)
    keys = []
    for _ in range(rows):
        if not keys or not same:
            key = [rng.gauss(0, 1) for _ in range(dk)]
            norm = math.sqrt(sum(x * x for x in key)) / length
        keys.append([x / norm for x in key])
    return keys


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def solve(keys, beta, gate, chunk):
    """T's rows (lists of `chunk` values) of one head and one sequence."""
    result = []
    for start in range(0, len(keys), chunk):
        rows = []
        for i in range(start, min(start + chunk, len(keys))):
            row = [0.0] * chunk
            for j in range(start, i):
                factor = beta[i] * sum(a * b for a, b in zip(keys[i], keys[j]))
                factor *= math.exp(sum(gate[j + 1:i + 1]))
                for c in range(j - start + 1):
                    row[c] -= factor * rows[j - start][c]
            row[i - start] = 1.0
            rows.append(row)
        result += rows
    return result

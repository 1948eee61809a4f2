"""Part of reader.py: structures of fixed length, checksums, blocks (SPEC.md sections 1, 5 and 8) and the codecs."""
from __future__ import annotations

import struct
import zlib
from collections import namedtuple
from contextlib import contextmanager
from typing import Callable

VERSION = 0
VALUES, BYTES = 0, 1
NONE, UNSIGNED, SIGNED, FLOAT = range(4)
INFINITY = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}


class Refused(ValueError):
    """The file is not valid: what is wrong, and where."""


def check(condition, what: str):
    if not condition:
        raise Refused(what)


@contextmanager
def place(name: str):
    """Names the place of whatever is refused within."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{name}: {error}") from None


class Layout:
    """A structure of fixed length. Fields whose names begin with "reserved" hold zeros."""

    def __init__(self, types: str, names: str):
        self.struct = struct.Struct("<" + types)
        self.bytes = self.struct.size
        self.record = namedtuple("Record", names)

    def unpack(self, data: bytes, offset=0):
        check(offset + self.bytes <= len(data), f"needs {self.bytes} bytes at {offset} but there are {len(data)} in all")
        return self.record._make(self.struct.unpack_from(data, offset))

    def read(self, data: bytes, offset=0):
        return refuse_reserved(self.unpack(data, offset))

    def read_all(self, data: bytes, offset: int, count: int) -> list:
        return [self.read(data, offset + i * self.bytes) for i in range(count)]


def refuse_reserved(record):
    for name, value in record._asdict().items():
        check(not name.startswith("reserved") or not any(value), "reserved bytes are not zero")
    return record


def check_version(magic: bytes, expected: bytes, version: int):
    check(magic == expected, f"the magic is {magic.hex()}, not {expected.hex()}")
    check(version == VERSION, f"format version {version} is unknown; this reader knows version {VERSION}")


def check_checksum(data: bytes, stored: int, what: str):
    found = zlib.crc32(data)
    check(found == stored, f"the checksum of {what} is {found:08x} but {stored:08x} is stored")


def align(x: int, a: int) -> int:
    return -(-x // a) * a


def unsigned(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def fits(value: int, bits: int, what: str):
    if value >> bits:
        raise Refused(f"{what} has bits beyond its {bits}")


# Statistics


def order_key(order: int, width: int) -> Callable:
    """What to compare stored bits by; for floats that is IEEE 754 totalOrder."""
    sign, mask = 1 << (width - 1), (1 << width) - 1
    return {NONE: int, UNSIGNED: int, SIGNED: lambda bits: bits ^ sign, FLOAT: lambda bits: bits ^ (mask if bits & sign else sign)}[order]


def is_nan(bits: int, width: int) -> bool:
    return bits & ~(1 << (width - 1)) > INFINITY[width]


def value_range(values: list, order: int, width: int) -> tuple:
    """Minimum and maximum as section 5 stores them."""
    if order == NONE:
        return 0, 0
    kept = {bits for bits in set(values) if order != FLOAT or not is_nan(bits, width)}
    if not kept:
        return INFINITY[width], INFINITY[width] | 1 << (width - 1)
    key = order_key(order, width)
    return min(kept, key=key), max(kept, key=key)


# Codecs: each decodes one tile of n values and also says where the encoding ends


FLBP = Layout("Q I 4s", "reference bit_width reserved")
RFOR = Layout("Q H H B B 2s", "value_reference length_reference run_count value_bit_width length_bit_width reserved")
DFOR_WIDE = Layout("Q Q I 12s", "first delta_reference bit_width reserved")
ALP = Layout("Q B b B B B 1s H", "reference scheme exponent bit_width right_bits code_bit_width reserved exception_count")
DEFLATE = Layout("I 12s", "stream_bytes reserved")
DICT = Layout("I I 8s", "reference bit_width reserved")
DFOR_NARROW = Layout("I I I 4s", "first delta_reference bit_width reserved")


def need(tile: bytes, count: int) -> int:
    check(len(tile) >= count, f"needs {count} bytes but has {len(tile)}")
    return count


def at_most(bit_width: int, limit: int):
    check(bit_width <= limit, f"bit width {bit_width} is more than {limit}")


def lanes(tile: bytes, offset: int, n: int, bit_width: int):
    """n values packed in lanes at offset, and where they end."""
    rows = -(-n // 32)
    words = -(-rows * bit_width // 32)
    end = need(tile, offset + words * 128)
    grid = struct.unpack_from(f"<{words * 32}I", tile, offset)
    values, mask = [0] * (rows * 32), (1 << bit_width) - 1
    for lane in range(32):
        bits = unsigned(struct.pack(f"<{words}I", *grid[lane::32]))
        values[lane::32] = [bits >> row * bit_width & mask for row in range(rows)]
        fits(bits, rows * bit_width, f"lane {lane}")
    check(not any(values[n:]), "positions behind the last value are not zero")
    return values[:n], end


def sequence(tile: bytes, offset: int, n: int, bit_width: int):
    """n values packed in a sequence at offset, and where they end."""
    end = need(tile, offset + -(-n * bit_width // 32) * 4)
    bits, mask = unsigned(tile[offset:end]), (1 << bit_width) - 1
    fits(bits, n * bit_width, "the sequence")
    return [bits >> i * bit_width & mask for i in range(n)], end


def decode_plain(tile: bytes, n: int, width: int, _=None):
    end = need(tile, n * width // 8)
    letter = {8: "B", 16: "H", 32: "I", 64: "Q"}[width]
    return list(struct.unpack_from(f"<{n}{letter}", tile)), end


def decode_flbp(tile: bytes, n: int, width: int, _=None):
    head = FLBP.read(tile)
    fits(head.reference, width, "reference")
    at_most(head.bit_width, width)
    residuals, end = lanes(tile, FLBP.bytes, n, head.bit_width)
    return [head.reference + residual & (1 << width) - 1 for residual in residuals], end


def decode_rfor(tile: bytes, n: int, width: int, _=None):
    head = RFOR.read(tile)
    fits(head.value_reference, width, "value_reference")
    at_most(head.value_bit_width, width)
    at_most(head.length_bit_width, 10)
    check(1 <= head.run_count <= n, f"run_count is {head.run_count}, not within 1 to {n}")
    residuals, end = sequence(tile, RFOR.bytes, head.run_count, head.value_bit_width)
    lengths, end = sequence(tile, end, head.run_count, head.length_bit_width)
    lengths = [length + head.length_reference for length in lengths]
    check(min(lengths) >= 1, "a run has length 0")
    check(sum(lengths) == n, f"run lengths add up to {sum(lengths)}, not {n}")
    runs = ([head.value_reference + residual & (1 << width) - 1] * length for residual, length in zip(residuals, lengths))
    return [value for run in runs for value in run], end


def decode_dfor(tile: bytes, n: int, width: int, _=None):
    layout = DFOR_WIDE if width == 64 else DFOR_NARROW
    head = layout.read(tile)
    fits(head.first, width, "first")
    fits(head.delta_reference, width, "delta_reference")
    at_most(head.bit_width, width)
    residuals, end = lanes(tile, layout.bytes, n, head.bit_width)
    values = [head.first]
    for residual in residuals[1:]:
        values.append(values[-1] + head.delta_reference + residual & (1 << width) - 1)
    return values, end


def exceptions(tile: bytes, offset: int, n: int, count: int, letter: str):
    """count values and their positions at offset, and where they end."""
    check(count <= n, f"exception_count is {count} of {n} values")
    body = struct.Struct(f"<{count}{letter}")
    middle = need(tile, offset + body.size)
    end = need(tile, middle + 2 * count)
    positions = struct.unpack_from(f"<{count}H", tile, middle)
    check(all(a < b for a, b in zip(positions, positions[1:] + (n,))), f"exception positions {positions} do not ascend within {n}")
    return dict(zip(positions, body.unpack_from(tile, offset))), end


def decode_alp(tile: bytes, n: int, width: int, _=None):
    head = ALP.read(tile)
    check(head.scheme in (0, 1), f"scheme is {head.scheme}")
    if head.scheme == 0:
        return decode_alp_decimal(head, tile, n, width)
    return decode_alp_split(head, tile, n, width)


def decode_alp_decimal(head, tile: bytes, n: int, width: int):
    fits(head.reference, width, "reference")
    at_most(head.bit_width, width)
    limit = 22 if width == 64 else 10
    check(-limit <= head.exponent <= limit, f"exponent is {head.exponent}, beyond {limit}")
    check(head.right_bits == head.code_bit_width == 0, "right_bits or code_bit_width is not 0")
    residuals, end = lanes(tile, ALP.bytes, n, head.bit_width)
    odd, end = exceptions(tile, end, n, head.exception_count, "Q" if width == 64 else "I")
    return [odd[i] if i in odd else decimal_bits(head.reference + residual, head.exponent, width) for i, residual in enumerate(residuals)], end


def decimal_bits(integer: int, exponent: int, width: int) -> int:
    """The bits of a float: the integer modulo 2^width as two's complement, at the exponent."""
    integer &= (1 << width) - 1
    integer -= integer >> (width - 1) << width
    power = float(10 ** abs(exponent))
    scale = power.__rtruediv__ if exponent >= 0 else power.__mul__
    if width == 64:
        return struct.unpack("<Q", struct.pack("<d", scale(float(integer))))[0]
    # Of two floats of 32 bits, quotient and product rounded to 64 bits and then to 32 are those rounded to 32 at once.
    narrow = struct.Struct("<f")
    nearest = narrow.unpack(narrow.pack(integer))[0]
    return struct.unpack("<I", narrow.pack(scale(nearest)))[0]


def decode_alp_split(head, tile: bytes, n: int, width: int):
    check(head.exponent == 0, f"exponent is {head.exponent} in scheme split")
    check(width - 16 <= head.right_bits < width, f"right_bits is {head.right_bits}")
    at_most(head.bit_width, head.right_bits)
    at_most(head.code_bit_width, 3)
    fits(head.reference, head.right_bits, "reference")
    dictionary = struct.unpack_from("<8H", tile, need(tile, ALP.bytes + 16) - 16)
    codes, end = lanes(tile, ALP.bytes + 16, n, head.code_bit_width)
    residuals, end = lanes(tile, end, n, head.bit_width)
    odd, end = exceptions(tile, end, n, head.exception_count, "H")
    for left in (*dictionary, *odd.values()):
        fits(left, width - head.right_bits, "a left part")
    mask = (1 << head.right_bits) - 1
    lefts = [odd.get(i, dictionary[code]) for i, code in enumerate(codes)]
    return [left << head.right_bits | head.reference + residual & mask for left, residual in zip(lefts, residuals)], end


def decode_dict(tile: bytes, n: int, width: int, entries: list):
    head = DICT.read(tile)
    if head.bit_width == 0xFFFFFFFF:
        check(head.reference == 0, f"reference {head.reference} before values themselves")
        values, end = decode_plain(tile[16:], n, width, entries)
        return values, 16 + end
    at_most(head.bit_width, 16)
    residuals, end = lanes(tile, 16, n, head.bit_width)
    codes = [head.reference + residual for residual in residuals]
    check(max(codes + [head.reference]) < len(entries), f"code {max(codes)} of {len(entries)} values")
    return [entries[code] for code in codes], end


def dict_entries(shared: bytes, width: int) -> list:
    size = width // 8
    check(len(shared) % size == 0, f"{len(shared)} shared bytes are no whole number of values")
    entries = [unsigned(shared[i:i + size]) for i in range(0, len(shared), size)]
    check(len(entries) <= 65536, f"{len(entries)} distinct values")
    check(all(a < b for a, b in zip(entries, entries[1:])), "the distinct values do not ascend")
    return entries


def decode_deflate(tile: bytes, n: int, width: int, shared: bytes):
    head = DEFLATE.read(tile)
    size = n * width // 8
    end = need(tile, 16 + (head.stream_bytes or size))
    content = tile[16:end]
    if head.stream_bytes:
        inflater = zlib.decompressobj(-15, zdict=shared)
        content = inflater.decompress(content, size + 1)
        check(inflater.eof and not inflater.unused_data, "the stream does not end with its last byte")
    check(len(content) == size, f"the content has {len(content)} bytes, not {size}")
    return [sum(content[byte * n + i] << 8 * byte for byte in range(width // 8)) for i in range(n)], end


CODEC_NAMES = {0: "constant", 1: "plain", 2: "flbp", 3: "rfor", 4: "dfor", 5: "alp", 6: "dict", 7: "deflate"}
DECODERS = {1: decode_plain, 2: decode_flbp, 3: decode_rfor, 4: decode_dfor, 5: decode_alp, 6: decode_dict, 7: decode_deflate}


# Blocks


BLOCK = Layout("4s H H B B B 1s 5I Q Q Q 4s I", "magic version codec_id kind value_width order reserved tile_size value_count tile_count "
               "shared_bytes block_bytes min max constant reserved_2 header_checksum")
TILE_SIZES = {VALUES: (512, 1024), BYTES: (4096, 8192, 16384, 32768, 65536)}


def read_block(data: bytes, entry, kind: int, width: int, order: int):
    """The header and the values of a block, of which its entry and its buffer say what they are."""
    head = BLOCK.unpack(data)
    check_version(head.magic, b"CB2B", head.version)
    found = (head.block_bytes, head.value_count, head.kind, head.value_width, head.order)
    stated = (entry.block_bytes, entry.value_count, kind, width, order)
    check(found == stated, f"(block_bytes, value_count, kind, value_width, order) are {found}, but its entry and buffer say {stated}")
    check(head.header_checksum == entry.header_checksum, f"header_checksum is {head.header_checksum:08x}, but its entry names "
          f"{entry.header_checksum:08x}: this block does not belong here, or its header is damaged")
    check(head.value_count > 0, "value_count is 0")
    check(head.block_bytes <= 1 << 31, f"it has {head.block_bytes} bytes, more than 2^31")
    check(head.tile_size in TILE_SIZES[kind], f"tile_size is {head.tile_size}, not one of {TILE_SIZES[kind]}")
    values = constant_values(data, head) if head.codec_id == 0 else tiled_values(data, head)
    check(value_range(values, order, width) == (head.min, head.max), "min and max are not those of the values")
    return head, values


def check_header(data: bytes, head, tables_end: int):
    """What can be trusted only once the header's end is known."""
    check_checksum(data[:60] + data[64:tables_end], head.header_checksum, "the header")
    refuse_reserved(head)
    for name in ("min", "max", "constant"):
        fits(getattr(head, name), head.value_width, name)


def constant_values(data: bytes, head) -> list:
    check_header(data, head, 64)
    found = (head.tile_count, head.shared_bytes, head.block_bytes)
    check(found == (0, 0, 64), f"(tile_count, shared_bytes, block_bytes) of a constant block are {found}, not (0, 0, 64)")
    return [head.constant] * head.value_count


def tiled_values(data: bytes, head) -> list:
    check(head.codec_id in DECODERS, f"codec id {head.codec_id} is unknown")
    codec, decode = CODEC_NAMES[head.codec_id], DECODERS[head.codec_id]
    check(head.kind == VALUES or codec in ("plain", "deflate"), f"codec {codec} has no layout for bytes")
    check(codec != "alp" or head.value_width >= 32, f"codec alp has no layout of {head.value_width} bits")
    check(codec != "dict" or head.value_width >= 16, f"codec dict has no layout of {head.value_width} bits")
    check(codec in ("dict", "deflate") or head.shared_bytes == 0, f"codec {codec} has no shared bytes, but shared_bytes is {head.shared_bytes}")
    needed = align(head.value_count, head.tile_size) // head.tile_size
    check(head.tile_count == needed, f"tile_count is {head.tile_count}, not {needed}")
    offsets, checksums, ranges, shared = tile_tables(data, head)
    if codec == "dict":
        shared = dict_entries(shared, head.value_width)
    check(codec != "deflate" or len(shared) <= 32768, f"{len(shared)} shared bytes of codec deflate")
    check(head.constant == 0, "constant is not 0")
    values = []
    for i, checksum in enumerate(checksums):
        with place(f"{codec} tile {i}"):
            tile = data[offsets[i]:offsets[i + 1]]
            check_checksum(tile, checksum, "the tile")
            tile_values, end = decode(tile, min(head.tile_size, head.value_count - len(values)), head.value_width, shared)
            check(len(tile) - end < 16, f"the encoding ends at {end} of {len(tile)} bytes")
            check(not any(tile[end:]), "padding is not zero")
            if head.order != NONE:
                check(value_range(tile_values, head.order, head.value_width) == ranges[i], "minimum and maximum are not those of the values")
            values += tile_values
    return values


def tile_tables(data: bytes, head):
    """Tile offsets, tile checksums, pairs of tile minima and maxima, and the shared bytes."""
    count, value_bytes = head.tile_count, head.value_width // 8 if head.order != NONE else 0
    sizes = [head.shared_bytes, 4 * (count + 1), 4 * count, value_bytes * count, value_bytes * count]
    starts = [64 + sum(align(size, 16) for size in sizes[:i]) for i in range(6)]
    tables_end = starts.pop()
    check(tables_end < head.block_bytes, f"the tables end at {tables_end} but the block at {head.block_bytes}")
    check_header(data, head, tables_end)
    tables = [data[start:start + size] for start, size in zip(starts, sizes)]
    for start, size in zip(starts, sizes):
        check(not any(data[start + size:align(start + size, 16)]), f"padding at {start + size} is not zero")
    offsets = struct.unpack(f"<{count + 1}I", tables[1])
    check(offsets[0] == tables_end and offsets[-1] == head.block_bytes, f"tile offsets do not go from {tables_end} to {head.block_bytes}")
    check(not any(offset % 16 for offset in offsets), "a tile offset is not a multiple of 16")
    check(all(a < b for a, b in zip(offsets, offsets[1:])), "tile offsets do not ascend")
    minima, maxima = ([unsigned(table[i:i + value_bytes]) for i in range(0, len(table), value_bytes or 1)] for table in tables[3:])
    return offsets, struct.unpack(f"<{count}I", tables[2]), list(zip(minima, maxima)), tables[0]

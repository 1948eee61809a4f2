"""Part of reader_test.py: a small writer of cb2t files, from SPEC.md and the codecs' pages; it shares no code with the reader.

Values are given as reader.py prints them. Any field of any structure can be overridden before checksums are taken, to write invalid files.
"""
from __future__ import annotations

import itertools
import math
import struct
import zlib
from dataclasses import dataclass, field
from typing import Callable, Optional

VALIDITY, ENDS, VALUES, BYTES, CODES, TYPE_IDS, RANK = range(7)
NONE, UNSIGNED, SIGNED, FLOAT = range(4)
CODECS = {"plain": 1, "flbp": 2, "rfor": 3, "dfor": 4}


def pad(data: bytes, a: int) -> bytes:
    return data + bytes(-len(data) % a)


# Codecs


def bit_string(values, bit_width: int) -> str:
    """The bits of the values, the first bit first."""
    return "".join(format(value, f"0{bit_width}b")[::-1] for value in values) if bit_width else ""


def words(bits: str) -> list:
    bits += "0" * (-len(bits) % 32)
    return [int(bits[i:i + 32][::-1], 2) for i in range(0, len(bits), 32)]


def sequence(values, bit_width: int) -> bytes:
    return b"".join(struct.pack("<I", word) for word in words(bit_string(values, bit_width)))


def lanes(values, bit_width: int) -> bytes:
    values = values + [0] * (-len(values) % 32)
    columns = [words(bit_string(values[lane::32], bit_width)) for lane in range(32)]
    return b"".join(struct.pack("<I", column[k]) for k in range(len(columns[0])) for column in columns)


def reduced(values, width: int):
    """The smallest value as reference, the residuals and their bit width."""
    reference = min(values)
    residuals = [value - reference for value in values]
    return reference, residuals, max(residuals).bit_length()


def encode_plain(values, width: int) -> bytes:
    return b"".join(value.to_bytes(width // 8, "little") for value in values)


def encode_flbp(values, width: int) -> bytes:
    reference, residuals, bit_width = reduced(values, width)
    return struct.pack("<QII", reference, bit_width, 0) + lanes(residuals, bit_width)


def encode_rfor(values, width: int) -> bytes:
    runs = [(value, len(list(group))) for value, group in itertools.groupby(values)]
    value_reference, run_values, value_bit_width = reduced([run[0] for run in runs], width)
    length_reference, lengths, length_bit_width = reduced([run[1] for run in runs], width)
    head = struct.pack("<QHHBBH", value_reference, length_reference, len(runs), value_bit_width, length_bit_width, 0)
    return head + sequence(run_values, value_bit_width) + sequence(lengths, length_bit_width)


def encode_dfor(values, width: int) -> bytes:
    mask = (1 << width) - 1
    deltas = [(b - a) & mask for a, b in zip(values, values[1:])]
    delta_reference, residuals, bit_width = reduced(deltas, width) if deltas else (0, [], 0)
    head = struct.pack("<QQI12x" if width == 64 else "<IIII", *[values[0], delta_reference, bit_width, 0][:3 if width == 64 else 4])
    return head + lanes([0] + residuals, bit_width)


ENCODERS = {"plain": encode_plain, "flbp": encode_flbp, "rfor": encode_rfor, "dfor": encode_dfor}


# Blocks


def as_float(bits: int, width: int) -> float:
    return struct.unpack({16: "<e", 32: "<f", 64: "<d"}[width], bits.to_bytes(width // 8, "little"))[0]


def value_range(values, order: int, width: int):
    """Minimum and maximum of stored values; floats are compared as numbers, zeros by their sign."""
    if order == NONE:
        return 0, 0
    if order == FLOAT:
        keyed = [((as_float(v, width), math.copysign(1, as_float(v, width))), v) for v in values if not math.isnan(as_float(v, width))]
        infinity = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}[width]
        return (min(keyed)[1], max(keyed)[1]) if keyed else (infinity, infinity + (1 << width - 1))
    keyed = [(value - (value >> width - 1 << width) if order == SIGNED else value, value) for value in values]
    return min(keyed)[1], max(keyed)[1]


def pack_block(values, width: int, order: int, codec: str = "plain", tile_size: int = 512, kind: int = 0, tiles=None, change=None) -> bytes:
    """A block. `tiles` replaces its tiles' bytes; `change` is called with the fields of the header and tables before they are packed."""
    low, high = value_range(values, order, width)
    block = {"magic": b"CB2B", "version": 0, "codec_id": CODECS.get(codec, 0), "kind": kind, "width": width, "order": order, "reserved": 0,
             "tile_size": tile_size, "value_count": len(values), "tile_count": 0, "shared_bytes": 0, "block_bytes": 64, "min": low,
             "max": high, "constant": values[0], "reserved_2": 0, "offsets": [], "checksums": [], "minima": [], "maxima": [], "padding": b""}
    if codec == "constant":
        tiles = []
    else:
        parts = [values[i:i + tile_size] for i in range(0, len(values), tile_size)]
        tiles = [pad(tile, 16) for tile in tiles or [ENCODERS[codec](part, width) for part in parts]]
        ranges = [value_range(part, order, width) for part in parts] if order != NONE else []
        sizes = [4 * (len(tiles) + 1), 4 * len(tiles), len(ranges) * width // 8, len(ranges) * width // 8]
        start = 64 + sum(size + -size % 16 for size in sizes)
        offsets = [start + sum(map(len, tiles[:i])) for i in range(len(tiles) + 1)]
        block.update(tile_count=len(tiles), offsets=offsets, checksums=[zlib.crc32(tile) for tile in tiles], constant=0,
                     block_bytes=offsets[-1], minima=[low for low, _ in ranges], maxima=[high for _, high in ranges])
    if change:
        change(block)
    names = ("magic", "version", "codec_id", "kind", "width", "order", "reserved", "tile_size", "value_count", "tile_count", "shared_bytes",
             "block_bytes", "min", "max", "constant", "reserved_2")
    head = struct.pack("<4sHHBBBB5IQQQI", *(block[name] for name in names))
    tables = pad(struct.pack(f"<{len(block['offsets'])}I", *block["offsets"]), 16)
    tables += pad(struct.pack(f"<{len(block['checksums'])}I", *block["checksums"]) + block["padding"], 16)
    tables += b"".join(pad(b"".join(v.to_bytes(width // 8, "little") for v in block[name]), 16) for name in ("minima", "maxima"))
    return head + struct.pack("<I", block.get("header_checksum", zlib.crc32(tables, zlib.crc32(head)))) + tables + b"".join(tiles)


# The schema's flatbuffer: tables as lists of fields, each None, (form, number), a string, or a list behind a tag


@dataclass
class FlatTable:
    fields: list


@dataclass
class FlatNumbers:
    form: str
    numbers: list


def emit(out: bytearray, thing) -> int:
    """Appends a string, a vector of tables (a list), a vector of numbers or a table; returns where it begins."""
    out.extend(bytes(-len(out) % 8))
    at = len(out)
    if isinstance(thing, str):
        out.extend(struct.pack("<I", len(thing.encode())) + thing.encode() + b"\0")
    elif isinstance(thing, FlatNumbers):
        out.extend(struct.pack(f"<I{len(thing.numbers)}{thing.form}", len(thing.numbers), *thing.numbers))
    elif isinstance(thing, list):
        out.extend(struct.pack("<I", len(thing)) + bytes(4 * len(thing)))
        targets = {}  # a table that stands twice in a list is written once
        for index, item in enumerate(thing):
            slot = at + 4 + 4 * index
            if id(item) not in targets:
                targets[id(item)] = emit(out, item)
            struct.pack_into("<I", out, slot, targets[id(item)] - slot)
    else:
        offsets = [0 if item is None else 8 + 8 * index for index, item in enumerate(thing.fields)]
        out.extend(pad(struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), 8 + 8 * len(offsets), *offsets), 8))
        vtable, at = at, len(out)
        out.extend(struct.pack("<i", at - vtable) + bytes(4 + 8 * len(offsets)))
        for offset, item in zip(offsets, thing.fields):
            if isinstance(item, tuple):
                struct.pack_into("<" + item[0], out, at + offset, item[1])
            elif item is not None:
                point(out, at + offset, item)
    return at


def point(out: bytearray, at: int, thing):
    struct.pack_into("<I", out, at, emit(out, thing) - at)


def pack_metadata(pairs: Optional[dict]):
    return None if pairs is None else [FlatTable([key, value]) for key, value in pairs.items()]


def pack_schema(fields: list, metadata: Optional[dict] = None, header_type: int = 1) -> bytes:
    out = bytearray(4)
    schema = FlatTable([("h", 0), [f.flat() for f in fields], pack_metadata(metadata)])
    point(out, 0, FlatTable([("h", 4), ("B", header_type), schema, ("q", 0)]))
    return pad(bytes(out), 8)


# Types: their flatbuffer, and how a node's values are stored


@dataclass
class T:
    """An Arrow type: its number and table in the flatbuffer, and its way to buffers."""

    number: int
    fields: list
    put: Callable  # (column, field, values, chunk): stores what stands behind validity
    children: list = field(default_factory=list)
    validity: bool = True
    ranges: Optional[Callable] = None  # from a printed value to (what statistics compare, their bytes), or None for NaN
    flat_children: Optional[list] = None  # in the flatbuffer, where these are not the nodes
    raw: Optional[Callable] = None  # of strings and binary: from a printed value to bytes


@dataclass
class F:
    """A field."""

    name: str
    type: T
    nullable: bool = True
    metadata: Optional[dict] = None
    keys: Optional[tuple] = None  # (width, signed) of dictionary keys
    use_dictionary: Optional[str] = None  # "ordered" or "rank": strings by a dictionary of the file
    direct_groups: tuple = ()  # row groups that do not use it

    def flat(self) -> FlatTable:
        keys = self.keys and FlatTable([("q", 7), FlatTable([("i", self.keys[0]), ("?", self.keys[1])]), ("?", False)])
        return FlatTable([self.name, ("?", self.nullable), ("B", self.type.number), FlatTable(self.type.fields), keys,
                          [child.flat() for child in self.type.flat_children or self.type.children], pack_metadata(self.metadata)])

    def nodes(self) -> list:
        return [self] + [node for child in self.type.children for node in child.nodes()]


def filled(limbs: list) -> list:
    """Under nulls the first value that is not null, or 0."""
    filler = next((value for value in limbs if value is not None), 0)
    return [filler if value is None else value for value in limbs]


def fixed(number: int, fields: list, limbs: list, to_bits: Callable, ranges=None) -> T:
    """Limbs are (width, order); to_bits gives the value's bits as one integer."""
    def put(column, node, values, chunk):
        start = 0
        for limb, (width, order) in enumerate(limbs):
            bits = [None if v is None else to_bits(v) >> start & (1 << width) - 1 for v in values]
            column.buffer(VALUES, filled(bits), width, order, limb)
            start += width
    return T(number, fields, put, ranges=ranges)


def integer(number: int, fields: list, width: int, order: int = SIGNED, has_range: bool = True) -> T:
    limbs = [(64, UNSIGNED)] * ((width - 1) // 64) + [(min(width, 64), order)]
    ranges = (lambda v: (v, (int(v) & (1 << width) - 1).to_bytes(width // 8, "little"))) if has_range else None
    return fixed(number, fields, limbs, lambda v: int(v) & (1 << width) - 1, ranges)


def int_type(width: int, signed: bool = True) -> T:
    return integer(2, [("i", width), ("?", signed)], width, SIGNED if signed else UNSIGNED)


def float_type(width: int) -> T:
    def ranges(value):
        number = as_float(int(value, 16), width)
        return None if math.isnan(number) else ((number, math.copysign(1, number)), bytes.fromhex(value)[::-1])
    return fixed(3, [("h", {16: 0, 32: 1, 64: 2}[width])], [(width, FLOAT)], lambda v: int(v, 16), ranges)


def interval_type(unit: int, widths: list) -> T:
    def to_bits(value):
        parts = [value] if isinstance(value, int) else value
        return sum((part & (1 << width) - 1) << sum(widths[:i]) for i, (part, width) in enumerate(zip(parts, widths)))
    return fixed(11, [("h", unit)], [(width, SIGNED) for width in widths], to_bits)


def fixed_binary(size: int) -> T:
    if size > 64:
        def put(column, node, values, chunk):
            column.buffer(BYTES, list(b"".join(bytes(size) if v is None else bytes.fromhex(v) for v in values)), 8, NONE, kind=1)
        return T(15, [("i", size)], put)
    widths = [64] * (size // 8) + [w for w in (32, 16, 8) if size & w // 8]
    return fixed(15, [("i", size)], [(w, UNSIGNED) for w in widths], lambda v: int.from_bytes(bytes.fromhex(v), "little"),
                 lambda v: (bytes.fromhex(v), bytes.fromhex(v)))


def strings(number: int, raw: Callable = lambda v: v.encode()) -> T:
    def put(column, node, values, chunk):
        present = [None if v is None else raw(v) for v in values]
        if node.use_dictionary and column.group not in node.direct_groups:
            entries = column.entries[id(node)]
            chunk.update(encoding=1, dictionary=list(column.entries).index(id(node)))
            column.buffer(CODES, filled([None if v is None else entries.index(v) for v in present]), 8, UNSIGNED)
        else:
            column.strings([v or b"" for v in present])
    return T(number, [], put, ranges=lambda value: (raw(value), raw(value)), raw=raw)


def lists(number: int, child: F, fields: Optional[list] = None) -> T:
    def put(column, node, values, chunk):
        slots = [v or [] for v in values]
        column.buffer(ENDS, list(itertools.accumulate(len(v) for v in slots)), 32, UNSIGNED)
        column.later(child, [item for v in slots for item in v])
    return T(number, fields or [], put, [child])


def fixed_list(size: int, child: F) -> T:
    def put(column, node, values, chunk):
        column.later(child, [item for v in values for item in (v or [None] * size)])
    return T(16, [("i", size)], put, [child])


def struct_row(value) -> list:
    return list(value.values()) if isinstance(value, dict) else [pair[1] for pair in value]


def struct_type(children: list, to_row: Callable = struct_row) -> T:
    def put(column, node, values, chunk):
        rows = [[None] * len(children) if v is None else to_row(v) for v in values]
        for index, child in enumerate(children):
            column.later(child, [row[index] for row in rows])
    return T(13, [], put, children)


def map_type(key: F, value: F) -> T:
    return lists(17, F("entries", struct_type([key, value], to_row=list), nullable=False), [("?", False)])


def union(children: list, ids: Optional[list], dense: bool) -> T:
    known = ids or list(range(len(children)))
    def put(column, node, values, chunk):
        column.buffer(TYPE_IDS, [v[0] for v in values], 8, UNSIGNED)
        for i, child in zip(known, children):
            column.later(child, [v[1] if v[0] == i else None for v in values if not dense or v[0] == i])
    return T(14, [("h", int(dense)), FlatNumbers("i", ids) if ids else None], put, children, validity=False)


def null() -> T:
    return T(1, [], lambda column, node, values, chunk: None, validity=False)


def run_end_encoded(values: F) -> T:
    return T(22, [], values.type.put, values.type.children, ranges=values.type.ranges,
             flat_children=[F("run_ends", int_type(32), nullable=False), values])


# Columns and files


class Column:
    """The section of one column, and its blocks."""

    def __init__(self, node: F, groups: list, codecs, values_per_block: int, change: dict):
        self.field, self.nodes, self.change, self.codecs, self.values_per_block = node, node.nodes(), change, codecs, values_per_block
        self.chunks, self.dictionaries, self.buffers, self.heap = [], [], [], b""
        self.blocks = []  # (row group or None, value_count, bytes)
        self.entries, self.group = {}, None
        for index, inner in enumerate(self.nodes):
            if inner.use_dictionary:
                self.dictionary(index, inner, change.get("entries") or sorted(
                    {inner.type.raw(v) for v in self.all_values(inner, [v for g in groups for v in g]) if v is not None}))
        for self.group, values in enumerate(groups):
            self.node_chunks = {}
            self.waiting = [(node, values)]
            while self.waiting:
                self.node(*self.waiting.pop(0))
            self.chunks += [self.node_chunks[id(inner)] for inner in self.nodes]

    def all_values(self, wanted: F, values):
        """At least the values of a node which is the column's, or a child of its list or struct."""
        inner = [v.values() if isinstance(v, dict) else v for v in values if v is not None]
        return values if wanted is self.field else [item for v in inner for item in v]

    def dictionary(self, node_index: int, node: F, entries: list):
        ordered = node.use_dictionary == "ordered"
        if not ordered:
            entries = entries[::-1]
        first = len(self.buffers)
        self.strings(entries)
        if not ordered:
            self.buffer(RANK, [len(entries) - 1 - i for i in range(len(entries))] if "rank" not in self.change else self.change["rank"], 32, UNSIGNED)
        self.entries[id(node)] = entries
        self.dictionaries.append({"node": node_index, "flags": int(ordered), "entry_count": len(entries), "first_buffer": first,
                                  "buffer_count": len(self.buffers) - first, "reserved": 0})

    def later(self, child: F, values: list):
        self.waiting.append((child, values))

    def node(self, node: F, values: list):
        kind, nulls = node.type, sum(v is None for v in values)
        chunk = {"slot_count": len(values), "null_count": nulls if kind.validity or kind.number == 1 else 0, "nan_count": 0, "arrow_bytes": 0,
                 "first_buffer": len(self.buffers), "buffer_count": 0, "encoding": 0, "statistics": 0, "statistics_offset": 0, "min_bytes": 0,
                 "max_bytes": 0, "dictionary": 0xFFFFFFFF, "reserved": bytes(12)}
        self.mute = not values
        if nulls and kind.validity:
            self.buffer(VALIDITY, [int(v is not None) for v in values], 8, UNSIGNED)
        kind.put(self, node, values, chunk)
        chunk["buffer_count"] = len(self.buffers) - chunk["first_buffer"]
        if kind.ranges:
            pairs = [kind.ranges(v) for v in values if v is not None]
            chunk["nan_count"] = pairs.count(None)
            known = sorted(pair for pair in pairs if pair is not None)
            if known and max(len(known[0][1]), len(known[-1][1])) <= 64:
                low, high = known[0][1], known[-1][1]
                chunk.update(statistics=1, statistics_offset=len(self.heap), min_bytes=len(low), max_bytes=len(high))
                self.heap += low + high
        self.node_chunks[id(node)] = chunk

    mute = False  # a node without slots has no buffers

    def strings(self, values: list):
        self.buffer(ENDS, list(itertools.accumulate(map(len, values))), 32, UNSIGNED)
        self.buffer(BYTES, list(b"".join(values)), 8, NONE, kind=1)

    def buffer(self, role: int, values: list, width: int, order: int, limb: int = 0, kind: int = 0):
        if self.mute:
            return
        values = self.change.get("values", lambda role, values: values)(role, values)
        tile_size = 4096 if kind else 512
        per_block = self.values_per_block if not kind else 8192
        parts = [values[i:i + per_block] for i in range(0, len(values), per_block)]
        self.buffers.append({"role": role, "kind": kind, "width": width, "limb": limb, "block_count": len(parts),
                             "first_block": len(self.blocks), "values_per_block": per_block if parts else 0, "value_count": len(values)})
        for part in parts:
            codec = "constant" if len(set(part)) == 1 else "plain" if kind else next(self.codecs)
            self.blocks.append((self.group, len(part), pack_block(part, width, order, codec, tile_size, kind)))

    def section(self, offsets: list) -> bytes:
        tables = {"chunk": ("<QQQQIHBBIHHI12s", self.chunks), "dictionary": ("<IIQIIQ", self.dictionaries),
                  "buffer": ("<BBBBIIIQ", self.buffers),
                  "entry": ("<QIIII", [{"offset": offset, "block_bytes": len(data), "value_count": count,
                                         "header_checksum": struct.unpack_from("<I", data, 60)[0], "reserved": 0}
                                        for offset, (_, count, data) in zip(offsets, self.blocks)])}
        groups = len(self.chunks) // len(self.nodes)
        head = {"node_count": len(self.nodes), "row_group_count": groups, "dictionary_count": len(self.dictionaries),
                "buffer_count": len(self.buffers), "block_count": len(self.blocks), "heap_bytes": len(self.heap), "reserved": 0}
        head.update(self.change.get("section", {}))
        out = struct.pack("<6IQ", *head.values())
        for name, (form, rows) in tables.items():
            for index, row in enumerate(rows):
                row.update(self.change.get((name, index), {}))
                out += struct.pack(form, *row.values())
        return out + self.heap


def pack_file(fields: list, groups: list, metadata: Optional[dict] = None, codecs=("plain", "flbp", "rfor", "dfor"),
              values_per_block: int = 1024, change: Optional[dict] = None) -> bytes:
    """A file of row groups, each a list of columns' values. `change` overrides fields: by structure, and in sections by (structure, index)."""
    change = change or {}
    columns = [Column(f, [group[i] for group in groups], itertools.cycle(codecs), values_per_block, change) for i, f in enumerate(fields)]
    head = {"magic": b"cb2t\r\n\x1a\n", "version": 0, "reserved": bytes(54), **change.get("header", {})}
    out = struct.pack("<8sH54s", *head.values())
    offsets = [[0] * len(column.blocks) for column in columns]
    order = [*range(len(groups)), None]
    for group in change.get("group_order", order):
        for column, places in zip(columns, offsets):
            for index, (block_group, _, data) in enumerate(column.blocks):
                if block_group == group:
                    out = pad(out, 64) + change.get("gap", b"")
                    places[index] = len(out)
                    out += data
    entries = b""
    for column, places in zip(columns, offsets):
        section = column.section(places)
        out = pad(out, 64)
        entry = {"offset": len(out), "bytes": len(section), "checksum": zlib.crc32(section), "reserved": 0, **change.get("column", {})}
        entries += struct.pack("<QQII", *entry.values())
        out += section
    out = pad(out, 64)
    schema, created_by = change.get("schema", pack_schema(fields, metadata)), b"reader_test.py"
    rows = [len(group[0]) for group in groups]
    head = {"row_count": sum(rows), "row_group_count": len(groups), "column_count": len(fields), "schema_bytes": len(schema),
            "created_by_bytes": len(created_by), "reserved": bytes(36), **change.get("footer", {})}
    footer = struct.pack("<QIIQI36s", *head.values()) + struct.pack(f"<{len(groups)}Q", *change.get("rows", rows)) + entries + schema + created_by
    tail = {"offset": len(out), "bytes": len(footer), "checksum": 0, "version": 0, "reserved": 0, "magic": b"\ncb2tend", **change.get("trailer", {})}
    ends = struct.pack("<QQ", tail["offset"], tail["bytes"]), struct.pack("<HH", tail["version"], tail["reserved"])
    tail["checksum"] = tail["checksum"] or zlib.crc32(footer + b"".join(ends))
    return out + footer + struct.pack("<QQIHH8s", *tail.values())

#!/usr/bin/env python3
"""An independent reader of cb2t files, written from SPEC.md and the codecs' pages alone.

    python3 reader.py FILE.cb2t [--values | --stats] [--head N] [--column NAME]

Prints JSON lines: first the schema, then one line a column and row group (how it is stored, or with --stats null_count, nan_count, min and
max, those of nested nodes under "nodes"), or with --values one line a column. Whatever is printed, all that is read is decoded and checked:
all of the file, or with --column those columns. Where a writer breaks a "must" of SPEC.md, the file is refused even if other readers
need not see it. Exit codes: 0 fine, 3 the file is refused (why and where is on stderr).

Values: integers as JSON integers; booleans as such; floats as the hexadecimal digits of their bits, the sign bit first (so NaN payloads and
-0.0 are exact); strings as strings; binary as hexadecimal digits; decimals as the unscaled integer; dates, times, timestamps, durations and
Interval(YearMonth) as the stored integer; Interval(DayTime) as [days, milliseconds]; Interval(MonthDayNano) as [months, days, nanoseconds];
lists as lists; structs as objects (as a list of [name, value] if names repeat); maps as lists of [key, value]; unions as [type_id, value];
nulls as null. Dictionary, run-end encoded and view types are printed as their values.

The blocks and codecs are in reader_blocks.py, the schema in reader_schema.py. Whole columns are Python lists; a node or
buffer of more than 2^26 values is refused as this reader's own limit.
"""
from __future__ import annotations

import argparse
import json
import struct
import sys
from collections import Counter
from typing import Optional

from reader_blocks import (BYTES, CODEC_NAMES, NONE, UNSIGNED, VALUES, Layout, Refused, check, check_checksum, check_version, is_nan, place,
                           read_block, refuse_reserved, unsigned)
from reader_schema import Field, Type, preorder, read_schema, text

MAX_VALUES = 1 << 26
NO_DICTIONARY = 0xFFFFFFFF
ROLES = ("validity", "ends", "values", "bytes", "codes", "type_ids", "rank")

FILE_HEADER = Layout("8s H 54s", "magic version reserved")
TRAILER = Layout("Q Q I H 2s 8s", "footer_offset footer_bytes footer_checksum version reserved magic")
FOOTER = Layout("Q I I Q I 36s", "row_count row_group_count column_count schema_bytes created_by_bytes reserved")
COLUMN = Layout("Q Q I 4s", "section_offset section_bytes section_checksum reserved")
SECTION = Layout("6I 8s", "node_count row_group_count dictionary_count buffer_count block_count heap_bytes reserved")
CHUNK = Layout("4Q I H B B I H H I 12s", "slot_count null_count nan_count arrow_bytes first_buffer buffer_count encoding statistics "
               "statistics_offset min_bytes max_bytes dictionary reserved")
DICTIONARY = Layout("I I Q I I 8s", "node flags entry_count first_buffer buffer_count reserved")
BUFFER = Layout("4B I I I Q", "role kind value_width limb block_count first_block values_per_block value_count")
ENTRY = Layout("Q I I I 4s", "offset block_bytes value_count header_checksum reserved")


# Columns


class Cursor:
    """Takes the buffers of a node or dictionary one after the other, in the order of section 6."""

    def __init__(self, column: Column, first: int, count: int, slot_count: int, owner: str, group: Optional[int]):
        check(first + count <= len(column.buffers), f"buffers {first} to {first + count} of {len(column.buffers)}")
        self.column, self.next, self.end = column, first, first + count
        self.slot_count, self.owner, self.group = slot_count, owner, group

    def take(self, role: str, value_count: int, widths: tuple, order: int, limb: int = 0, kind: int = VALUES):
        if self.slot_count == 0:
            return []
        check(self.next < self.end, f"buffer {role} is missing")
        buffer = self.column.buffers[self.next]
        self.next += 1
        with place(f"buffer {self.next - 1}"):
            found = (ROLES[buffer.role], buffer.limb, buffer.kind, buffer.value_count)
            check(found == (role, limb, kind, value_count), f"(role, limb, kind, value_count) are {found}, not {(role, limb, kind, value_count)}")
            check(buffer.value_width in widths, f"value_width of {role} is {buffer.value_width}, not one of {widths}")
            return self.column.read_buffer(buffer, order, self.owner, self.group)

    def finish(self):
        check(self.next == self.end, f"{self.end - self.next} buffers more than its type has")


def check_under_nulls(values: list, valid: list):
    """A value under a null is a copy of one that is not null, or 0."""
    nulls = {value for value, ok in zip(values, valid) if not ok}
    others = {value for value, ok in zip(values, valid) if ok} or {0}
    check(nulls <= others, "a value under a null is no copy of a value that is not null")


class Column:
    """A column's section, and the values of its nodes."""

    def __init__(self, file: File, field: Field, section: bytes):
        self.file, self.field, self.nodes = file, field, preorder(field)
        for index, node in enumerate(self.nodes):
            node.index = index
        head = SECTION.read(section)
        groups = len(file.group_rows)
        check(head.node_count == len(self.nodes), f"node_count is {head.node_count} but the schema's type has {len(self.nodes)}")
        check(head.row_group_count == groups, f"row_group_count is {head.row_group_count} but the footer's is {groups}")
        parts = ((CHUNK, groups * head.node_count), (DICTIONARY, head.dictionary_count), (BUFFER, head.buffer_count), (ENTRY, head.block_count))
        total = SECTION.bytes + sum(layout.bytes * count for layout, count in parts) + head.heap_bytes
        check(len(section) == total, f"the section has {len(section)} bytes but its parts {total}")
        tables, at = [], SECTION.bytes
        for layout, count in parts:
            tables.append(layout.read_all(section, at, count))
            at += layout.bytes * count
        self.chunks, self.dictionaries, self.buffers, self.blocks = tables
        self.heap = section[at:]
        self.stored = [[] for _ in range(groups)]  # what the buffers of each row group take
        self.statistics = [[] for _ in range(groups)]  # of each node in each row group
        for index, buffer in enumerate(self.buffers):
            with place(f"buffer {index}"):
                self.check_buffer(buffer)
        self.entries = [self.read_dictionary(index) for index in range(head.dictionary_count)]
        self.groups = [self.read_group(group, rows) for group, rows in enumerate(file.group_rows)]

    def check_buffer(self, buffer):
        check(buffer.role < len(ROLES), f"role {buffer.role} is unknown")
        check(buffer.kind in (VALUES, BYTES), f"kind {buffer.kind} is unknown")
        check(buffer.value_width in ((8, 16, 32, 64) if buffer.kind == VALUES else (8,)), f"value_width {buffer.value_width} is unknown")
        last = buffer.first_block + buffer.block_count
        check(last <= len(self.blocks), f"blocks {buffer.first_block} to {last} of {len(self.blocks)}")
        counts = [entry.value_count for entry in self.blocks[buffer.first_block:last]]
        check(sum(counts) == buffer.value_count, f"value_count is {buffer.value_count} but its blocks hold {sum(counts)}")
        check(buffer.values_per_block > 0 or not counts, "values_per_block is 0")
        check(buffer.values_per_block == 0 or counts, "values_per_block is not 0, but there is no block")
        check(all(count == buffer.values_per_block for count in counts[:-1]), "a block before the last does not hold values_per_block")
        check(not counts or counts[-1] <= buffer.values_per_block, "the last block holds more than values_per_block")
        check(buffer.value_count <= MAX_VALUES, f"{buffer.value_count} values are more than this reader takes")

    def read_buffer(self, buffer, order: int, owner: str, group: Optional[int]):
        values, codecs = [], Counter()
        for index in range(buffer.first_block, buffer.first_block + buffer.block_count):
            with place(f"block {index}"):
                entry = self.blocks[index]
                data = self.file.structure(entry.offset, entry.block_bytes, f"column {self.field.name!r}: {owner}: block {index}", group)
                head, block_values = read_block(data, entry, buffer.kind, buffer.value_width, order)
                check(buffer.values_per_block % head.tile_size == 0, f"values_per_block is no multiple of tile_size {head.tile_size}")
                codecs[CODEC_NAMES[head.codec_id]] += 1
                values += block_values
        if group is not None:
            blocks = self.blocks[buffer.first_block:buffer.first_block + buffer.block_count]
            self.stored[group].append({"owner": owner, "role": ROLES[buffer.role], "limb": buffer.limb, "value_width": buffer.value_width,
                                       "values": len(values), "bytes": sum(block.block_bytes for block in blocks), "codecs": codecs})
        return values

    def read_dictionary(self, index: int) -> list:
        dictionary = self.dictionaries[index]
        with place(f"dictionary {index}"):
            check(dictionary.node < len(self.nodes), f"node {dictionary.node} of {len(self.nodes)}")
            node = self.nodes[dictionary.node]
            check(node.type.shape == "string", f"node {dictionary.node} is neither string nor binary")
            check(all(other.node != dictionary.node for other in self.dictionaries[:index]), f"node {dictionary.node} has another one")
            check(dictionary.flags <= 1, f"flags {dictionary.flags:#x} are unknown")
            count = dictionary.entry_count
            check(count <= MAX_VALUES, f"{count} entries are more than this reader takes")
            buffers = Cursor(self, dictionary.first_buffer, dictionary.buffer_count, count, f"dictionary {index}", None)
            entries = self.strings(buffers, [1] * count)
            for entry in entries:
                node.type.render(entry)
            ranked = sorted(range(count), key=entries.__getitem__)
            check(len(set(entries)) == count, "entries are not distinct")
            if dictionary.flags & 1:
                check(ranked == list(range(count)), "entries do not ascend though it is ordered")
            else:
                rank = buffers.take("rank", count, (32,), UNSIGNED)
                check(sorted(rank) == list(range(count)), "rank is no permutation")
                check(all(rank[entry] == r for r, entry in enumerate(ranked)), "rank is not the order of the entries")
            buffers.finish()
            return entries

    def read_group(self, group: int, rows: int) -> list:
        with place(f"row group {group}"):
            return self.read_node(self.field, group, rows)

    def read_node(self, node: Field, group: int, slot_count: int) -> list:
        """What is printed for each slot."""
        chunk = self.chunks[group * len(self.nodes) + node.index]
        with place(f"node {node.index}"):
            check(chunk.slot_count == slot_count, f"slot_count is {chunk.slot_count}, not {slot_count}")
            check(slot_count <= MAX_VALUES, f"{slot_count} slots are more than this reader takes")
            check(chunk.null_count <= slot_count, f"null_count is {chunk.null_count} of {slot_count} slots")
            check(chunk.statistics <= 1, f"statistics {chunk.statistics} is unknown")
            self.check_encoding(node, chunk)
            self.statistics[group].append({"node": node.index, "name": node.name, "null_count": chunk.null_count,
                                           "nan_count": chunk.nan_count, "min": None, "max": None})
            buffers = Cursor(self, chunk.first_buffer, chunk.buffer_count, slot_count, f"node {node.index}", group)
            valid = self.validity(node.type, chunk, buffers)
            values = getattr(self, "read_" + node.type.shape)(node, buffers, valid, chunk, group)
            return [value if ok else None for value, ok in zip(values, valid)]

    def check_encoding(self, node: Field, chunk):
        check(chunk.encoding <= 1, f"encoding {chunk.encoding} is unknown")
        if chunk.encoding == 0:
            check(chunk.dictionary == NO_DICTIONARY, "it has a dictionary, but encoding 0")
            return
        check(node.type.shape == "string", "encoding 1 is for strings and binary")
        check(chunk.dictionary < len(self.dictionaries), f"dictionary {chunk.dictionary} of {len(self.dictionaries)}")
        owner = self.dictionaries[chunk.dictionary].node
        check(owner == node.index, f"dictionary {chunk.dictionary} is node {owner}'s")

    def validity(self, kind: Type, chunk, buffers: Cursor) -> list:
        if kind.shape == "null":
            check(chunk.null_count == chunk.slot_count, f"null_count is {chunk.null_count} of {chunk.slot_count} nulls")
            return [0] * chunk.slot_count
        if chunk.null_count == 0:
            return [1] * chunk.slot_count
        check(kind.shape not in ("sparse", "dense"), "a union has no nulls of its own")
        valid = buffers.take("validity", chunk.slot_count, (8,), UNSIGNED)
        check(set(valid) <= {0, 1}, "validity is not 0 or 1")
        check(valid.count(0) == chunk.null_count, f"null_count is {chunk.null_count} but validity has {valid.count(0)} zeros")
        return valid

    def ends(self, buffers: Cursor, valid: list) -> list:
        """Where each slot begins, and last where the last ends."""
        bounds = [0] + buffers.take("ends", len(valid), (32, 64), UNSIGNED)
        check(all(a <= b for a, b in zip(bounds, bounds[1:])), "ends descend")
        check(all(ok or a == b for a, b, ok in zip(bounds, bounds[1:], valid)), "a null slot is not empty")
        return bounds

    # Leaves: first the raw values, whatever stands under nulls.

    def read_fixed(self, node, buffers, valid, chunk, group):
        limbs = []
        for limb, (width, order) in enumerate(node.type.limbs):
            values = buffers.take("values", len(valid), (width,), order, limb)
            check_under_nulls(values, valid)
            limbs.append([value.to_bytes(width // 8, "little") for value in values])
        raw = [b"".join(parts) for parts in zip(*limbs)] if limbs else [b""] * len(valid)
        return self.leaves(node, raw, buffers, valid, chunk, group)

    def read_wide(self, node, buffers, valid, chunk, group):
        size = node.type.size
        data = bytes(buffers.take("bytes", size * len(valid), (8,), NONE, kind=BYTES))
        raw = [data[i * size:(i + 1) * size] for i in range(len(valid))]
        return self.leaves(node, raw, buffers, valid, chunk, group)

    def read_string(self, node, buffers, valid, chunk, group):
        raw = self.strings(buffers, valid) if chunk.encoding == 0 else self.coded(buffers, valid, self.entries[chunk.dictionary])
        return self.leaves(node, raw, buffers, valid, chunk, group)

    def strings(self, buffers: Cursor, valid: list) -> list:
        bounds = self.ends(buffers, valid)
        data = bytes(buffers.take("bytes", bounds[-1], (8,), NONE, kind=BYTES))
        return [data[a:b] for a, b in zip(bounds, bounds[1:])]

    def coded(self, buffers: Cursor, valid: list, entries: list) -> list:
        codes = buffers.take("codes", len(valid), (8, 16, 32), UNSIGNED)
        check(max(codes, default=-1) < len(entries), f"code {max(codes, default=0)} of a dictionary of {len(entries)} entries")
        check_under_nulls(codes, valid)
        return [entries[code] for code in codes]

    def leaves(self, node: Field, raw: list, buffers: Cursor, valid: list, chunk, group: int) -> list:
        """What is printed for raw values, after their statistics are checked."""
        buffers.finish()
        present = {value for value, ok in zip(raw, valid) if ok}
        rendered = {value: node.type.render(value) for value in present}
        nans = {value for value in present if node.type.is_float() and is_nan(unsigned(value), 8 * len(value))}
        nan_count = sum(ok and value in nans for value, ok in zip(raw, valid))
        check(chunk.nan_count == nan_count, f"nan_count is {chunk.nan_count}, not {nan_count}")
        if chunk.statistics:
            found = self.check_range(node.type, chunk, present - nans)
            self.statistics[group][-1].update(zip(("min", "max"), map(node.type.render, found)))
        return [rendered.get(value) for value in raw]

    def check_range(self, kind: Type, chunk, covered: set) -> tuple:
        check(kind.compare is not None, f"{kind.label} has no statistics")
        middle = chunk.statistics_offset + chunk.min_bytes
        end = middle + chunk.max_bytes
        check(end <= len(self.heap), f"statistics end at {end} of the heap's {len(self.heap)} bytes")
        check(max(chunk.min_bytes, chunk.max_bytes) <= 64, "statistics are longer than 64 bytes")
        check(covered, "min and max are known, but there is no value")
        stored = self.heap[chunk.statistics_offset:middle], self.heap[middle:end]
        found = min(covered, key=kind.compare), max(covered, key=kind.compare)
        check(stored == found, f"min and max are stored as {stored} but are {found}")
        return found

    # The other shapes of types.

    def nested(self, buffers: Cursor, chunk):
        """After the last buffer of a node that is no leaf."""
        buffers.finish()
        check(not chunk.statistics and not chunk.nan_count, "the type has no statistics")

    def read_null(self, node, buffers, valid, chunk, group):
        self.nested(buffers, chunk)
        return valid

    def read_list(self, node, buffers, valid, chunk, group):
        bounds = self.ends(buffers, valid)
        self.nested(buffers, chunk)
        child = self.read_node(node.children[0], group, bounds[-1])
        return [child[a:b] for a, b in zip(bounds, bounds[1:])]

    def read_fixed_list(self, node, buffers, valid, chunk, group):
        self.nested(buffers, chunk)
        size = node.type.size
        child = self.read_node(node.children[0], group, size * len(valid))
        return [child[i * size:(i + 1) * size] for i in range(len(valid))]

    def read_entries(self, node, buffers, valid, chunk, group):
        """A map's entries, or the rows of a struct."""
        self.nested(buffers, chunk)
        children = [self.read_node(child, group, len(valid)) for child in node.children]
        return [list(row) for row in zip(*children)] if children else [[] for _ in valid]

    def read_struct(self, node, buffers, valid, chunk, group):
        names = [child.name for child in node.children]
        rows = self.read_entries(node, buffers, valid, chunk, group)
        if len(set(names)) == len(names):
            return [dict(zip(names, row)) for row in rows]
        return [[list(pair) for pair in zip(names, row)] for row in rows]

    def read_sparse(self, node, buffers, valid, chunk, group):
        ids = self.type_ids(node, buffers, valid, chunk)
        values = {i: self.read_node(child, group, len(ids)) for i, child in zip(node.type.type_ids, node.children)}
        return [[i, values[i][slot]] for slot, i in enumerate(ids)]

    def read_dense(self, node, buffers, valid, chunk, group):
        ids = self.type_ids(node, buffers, valid, chunk)
        values = {i: iter(self.read_node(child, group, ids.count(i))) for i, child in zip(node.type.type_ids, node.children)}
        return [[i, next(values[i])] for i in ids]

    def type_ids(self, node, buffers, valid, chunk):
        ids = buffers.take("type_ids", len(valid), (8,), UNSIGNED)
        self.nested(buffers, chunk)
        unknown = set(ids) - set(node.type.type_ids)
        check(not unknown, f"type ids {sorted(unknown)} are not the type's")
        return ids


# The file


class File:
    """A file's header, trailer, footer and schema; columns are read by `column`."""

    def __init__(self, data: bytes):
        self.data = data
        check(len(data) >= 96, f"the file has {len(data)} bytes; the shortest has 96")
        with place("file header"):
            head = FILE_HEADER.unpack(data)
            check_version(head.magic, b"cb2t\r\n\x1a\n", head.version)
            refuse_reserved(head)
        self.trailer_offset = len(data) - TRAILER.bytes
        self.structures = [(0, FILE_HEADER.bytes, "file header", None), (self.trailer_offset, TRAILER.bytes, "trailer", None)]
        with place("trailer"):
            tail = data[self.trailer_offset:]
            trailer = TRAILER.unpack(tail)
            check_version(trailer.magic, b"\ncb2tend", trailer.version)
            refuse_reserved(trailer)
            check(trailer.footer_offset + trailer.footer_bytes == self.trailer_offset, "the footer does not end where the trailer begins")
            footer = self.structure(trailer.footer_offset, trailer.footer_bytes, "footer")
            check_checksum(footer + tail[:16] + tail[20:24], trailer.footer_checksum, "the footer")
        with place("footer"):
            self.read_footer(footer)

    def read_footer(self, footer: bytes):
        head = FOOTER.read(footer)
        columns_at = FOOTER.bytes + 8 * head.row_group_count
        schema_at = columns_at + COLUMN.bytes * head.column_count
        created_by_at = schema_at + head.schema_bytes
        total = created_by_at + head.created_by_bytes
        check(len(footer) == total, f"it has {len(footer)} bytes but its parts {total}")
        self.rows = head.row_count
        self.group_rows = struct.unpack_from(f"<{head.row_group_count}Q", footer, FOOTER.bytes)
        check(all(self.group_rows), "a row group is empty")
        check(sum(self.group_rows) == head.row_count, f"row_count is {head.row_count} but the row groups have {sum(self.group_rows)}")
        self.sections = COLUMN.read_all(footer, columns_at, head.column_count)
        with place("schema"):
            self.fields, self.metadata = read_schema(footer[schema_at:created_by_at])
        check(len(self.fields) == head.column_count, f"column_count is {head.column_count} but the schema has {len(self.fields)} fields")
        text(footer[created_by_at:])

    def structure(self, offset: int, count: int, name: str, group: Optional[int] = None) -> bytes:
        """The bytes of a structure, which is noted for `check_all_bytes`."""
        check(offset % 64 == 0, f"offset {offset} is not a multiple of 64")
        check(64 <= offset and offset + count <= self.trailer_offset, f"bytes {offset} to {offset + count} are outside 64 to {self.trailer_offset}")
        self.structures.append((offset, count, name, group))
        return self.data[offset:offset + count]

    def column(self, index: int) -> Column:
        entry, field = self.sections[index], self.fields[index]
        with place(f"column {field.name!r}"):
            section = self.structure(entry.section_offset, entry.section_bytes, f"section of column {field.name!r}")
            check_checksum(section, entry.section_checksum, "the section")
            return Column(self, field, section)

    def check_all_bytes(self):
        """After all columns are read: every byte belongs to one structure or is padding; row groups follow each other."""
        end, previous, last_group = 0, "", 0
        for offset, count, name, group in sorted(self.structures, key=lambda structure: structure[:2]):
            check(offset >= end, f"{name} at {offset} overlaps {previous}, which ends at {end}")
            check(offset - end < 64, f"bytes {end} to {offset} belong to no structure")
            check(not any(self.data[end:offset]), f"padding between {end} and {offset} is not zero")
            check(group is None or group >= last_group, f"{name} of row group {group} stands behind a block of row group {last_group}")
            end, previous, last_group = offset + count, name, last_group if group is None else group


# The command line


def schema_line(file: File) -> dict:
    columns = [{"name": f.name, "type": f.type.label, "nullable": f.nullable, **({"metadata": f.metadata} if f.metadata else {})}
               for f in file.fields]
    return {"rows": file.rows, "columns": columns, "metadata": file.metadata}


def column_lines(column: Column, options) -> list:
    name = column.field.name
    if options.values:
        values = [value for group in column.groups for value in group]
        return [{"column": name, "values": values[:options.head]}]
    lines = []
    for group, rows in enumerate(column.file.group_rows):
        nodes = column.statistics[group]
        if options.stats:
            top = {key: nodes[0][key] for key in ("null_count", "nan_count", "min", "max")}
            lines.append({"row_group": group, "column": name, **top, **({"nodes": nodes[1:]} if nodes[1:] else {})})
        else:
            lines.append({"row_group": group, "column": name, "rows": rows, "null_count": nodes[0]["null_count"],
                          "encodings": [column.chunks[group * len(nodes) + i].encoding for i in range(len(nodes))],
                          "buffers": column.stored[group]})
    return lines


def read_lines(options) -> list:
    with open(options.file, "rb") as stream:
        file = File(stream.read())
    wanted = [i for i, field in enumerate(file.fields) if options.column in (None, field.name)]
    check(wanted or options.column is None, f"there is no column {options.column!r}")
    lines = [schema_line(file)] + [line for i in wanted for line in column_lines(file.column(i), options)]
    if options.column is None:
        file.check_all_bytes()
    return lines


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description="Reads and verifies a cb2t file; prints JSON lines.")
    parser.add_argument("file")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--values", action="store_true", help="one line a column: its values")
    what.add_argument("--stats", action="store_true", help="one line a column and row group: counts, minimum and maximum")
    parser.add_argument("--head", type=int, metavar="N", help="with --values: the first N values only")
    parser.add_argument("--column", metavar="NAME", help="read and verify this column only")
    options = parser.parse_args(arguments)
    try:
        lines = read_lines(options)
    except (Refused, OSError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 3
    for line in lines:
        print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())

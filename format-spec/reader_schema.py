"""Part of reader.py: the Arrow IPC schema, from its flatbuffer to the types that section 6 of SPEC.md stores."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Callable, NamedTuple, Optional

from reader_blocks import FLOAT, SIGNED, UNSIGNED, Refused, check, order_key, place, unsigned

MAX_DEPTH = 64


class Flatbuffer:
    """Checked access. What is followed is paid for, so that parts that share their children cannot grow without end."""

    def __init__(self, data: bytes):
        self.data, self.budget = data, 8 * len(data)

    def bytes(self, at: int, count: int) -> bytes:
        check(0 <= at and at + count <= len(self.data), f"{count} bytes at {at} lie outside the flatbuffer of {len(self.data)}")
        return self.data[at:at + count]

    def number(self, at: int, form: str):
        return struct.unpack("<" + form, self.bytes(at, struct.calcsize("<" + form)))[0]

    def spend(self, count: int):
        self.budget -= count
        check(self.budget >= 0, "the flatbuffer's parts are shared too often")


class Table:
    """A flatbuffer table; a field that it lacks has its default."""

    def __init__(self, buffer: Flatbuffer, at: int):
        buffer.spend(4)
        self.buffer, self.at = buffer, at
        self.vtable = at - buffer.number(at, "i")
        self.vtable_bytes = buffer.number(self.vtable, "H")

    def find(self, index: int) -> Optional[int]:
        entry = 4 + 2 * index
        offset = self.buffer.number(self.vtable + entry, "H") if entry + 2 <= self.vtable_bytes else 0
        return self.at + offset if offset else None

    def number(self, index: int, form: str, default=0):
        at = self.find(index)
        return default if at is None else self.buffer.number(at, form)

    def follow(self, index: int) -> Optional[int]:
        at = self.find(index)
        return None if at is None else at + self.buffer.number(at, "I")

    def table(self, index: int) -> Optional[Table]:
        at = self.follow(index)
        return None if at is None else Table(self.buffer, at)

    def vector(self, index: int, item_bytes: int) -> range:
        """Where the items stand."""
        at = self.follow(index)
        if at is None:
            return range(0)
        count = self.buffer.number(at, "I")
        self.buffer.spend(len(self.buffer.bytes(at + 4, count * item_bytes)))
        return range(at + 4, at + 4 + count * item_bytes, item_bytes)

    def tables(self, index: int) -> list:
        return [Table(self.buffer, at + self.buffer.number(at, "I")) for at in self.vector(index, 4)]

    def string(self, index: int) -> str:
        places = self.vector(index, 1)
        return text(self.buffer.bytes(places.start, len(places)))

    def metadata(self, index: int) -> dict:
        return {pair.string(0): pair.string(1) for pair in self.tables(index)}


class Type(NamedTuple):
    """An Arrow type as section 6 sees it. A raw value is the bytes that Arrow stores for it."""

    label: str
    shape: str  # names the method of Column that reads it
    limbs: tuple = ()  # (bits, order) of each
    render: Optional[Callable] = None  # from a raw value to what is printed
    compare: Optional[Callable] = None  # from a raw value to what statistics compare; None where there are none
    size: int = 0  # of FixedSizeBinary and FixedSizeList
    type_ids: tuple = ()  # of unions

    def is_float(self) -> bool:
        return bool(self.limbs) and self.limbs[0][1] == FLOAT


@dataclass
class Field:
    """A field of the schema and, in a column's type tree, its node."""

    name: str
    nullable: bool
    type: Type
    children: list
    metadata: dict
    index: int = 0  # of the node, in preorder


def signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def float_bits(raw: bytes) -> str:
    return raw[::-1].hex()


def boolean(raw: bytes) -> bool:
    check(raw in (b"\0", b"\1"), f"a boolean is {raw[0]}, not 0 or 1")
    return raw == b"\1"


def text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"a string is not UTF-8: {error}") from None


def pick(choices: tuple, index: int, what: str):
    check(0 <= index < len(choices), f"{what} {index} is unknown")
    return choices[index]


def one_of(widths: tuple, width: int, what: str) -> int:
    check(width in widths, f"{what} of {width} bits is unknown")
    return width


def number_type(label: str, width: int, order: int = SIGNED) -> Type:
    limbs = ((64, UNSIGNED),) * ((width - 1) // 64) + ((min(width, 64), order),)
    key = order_key(order, width)
    render = {UNSIGNED: unsigned, SIGNED: signed, FLOAT: float_bits}[order]
    return Type(label, "fixed", limbs, render, lambda raw: key(unsigned(raw)))


def interval_type(label: str, widths: tuple) -> Type:
    starts = [sum(widths[:i]) // 8 for i in range(len(widths))]

    def parts(raw):
        values = [signed(raw[start:start + width // 8]) for start, width in zip(starts, widths)]
        return values if len(values) > 1 else values[0]

    return Type(f"Interval({label})", "fixed", tuple((width, SIGNED) for width in widths), parts)


def binary_type(size: int) -> Type:
    check(size >= 0, f"FixedSizeBinary({size}) has a negative size")
    widths = [64] * (size // 8) + [width for width in (32, 16, 8) if size * 8 & width]
    return Type(f"FixedSizeBinary({size})", "fixed" if size <= 64 else "wide", tuple((width, UNSIGNED) for width in widths),
                bytes.hex, bytes, size)


def int_type(t: Table) -> Type:
    width, is_signed = one_of((8, 16, 32, 64), t.number(0, "i"), "an integer"), t.number(1, "?", False)
    return number_type(f"Int{width}", width, SIGNED) if is_signed else number_type(f"UInt{width}", width, UNSIGNED)


def leaf_type(name: str, t: Table) -> Type:
    unit = ("s", "ms", "us", "ns")
    if name == "Null":
        return Type(name, "null")
    if name in ("Utf8", "LargeUtf8", "Utf8View"):
        return Type(name, "string", (), text, bytes)
    if name in ("Binary", "LargeBinary", "BinaryView"):
        return Type(name, "string", (), bytes.hex, bytes)
    if name == "FixedSizeBinary":
        return binary_type(t.number(0, "i"))
    if name == "Bool":
        return number_type("Boolean", 8, UNSIGNED)._replace(render=boolean)
    if name == "Int":
        return int_type(t)
    if name == "FloatingPoint":
        width = pick((16, 32, 64), t.number(0, "h"), "float precision")
        return number_type(f"Float{width}", width, FLOAT)
    if name == "Decimal":
        width = one_of((32, 64, 128, 256), t.number(2, "i", 128), "a decimal")
        return number_type(f"Decimal{width}({t.number(0, 'i')}, {t.number(1, 'i')})", width)
    if name == "Date":
        width = pick((32, 64), t.number(0, "h", 1), "date unit")
        return number_type(f"Date{width}", width)
    if name == "Time":
        index = t.number(0, "h", 1)
        width = one_of((64,) if index > 1 else (32,), t.number(1, "i", 32), f"a time of unit {index}")
        return number_type(f"Time{width}({pick(unit, index, 'time unit')})", width)
    if name == "Timestamp":
        zone = f", {t.string(1)}" if t.find(1) else ""
        return number_type(f"Timestamp({pick(unit, t.number(0, 'h'), 'time unit')}{zone})", 64)
    if name == "Duration":
        return number_type(f"Duration({pick(unit, t.number(0, 'h', 1), 'time unit')})", 64)
    intervals = (("YearMonth", (32,)), ("DayTime", (32, 32)), ("MonthDayNano", (32, 32, 64)))
    return interval_type(*pick(intervals, t.number(0, "h"), "interval unit"))


def nested_type(name: str, t: Table, children: list) -> Type:
    label = f"{name}({signature(children)})"
    if name == "Struct":
        return Type(label, "struct")
    if name == "Union":
        return union_type(t, children)
    check(len(children) == (2 if name == "RunEndEncoded" else 1), f"{name} has {len(children)} children")
    if name == "FixedSizeList":
        size = t.number(0, "i")
        check(size >= 0, f"FixedSizeList({size}) has a negative size")
        return Type(f"FixedSizeList({size}, {signature(children)})", "fixed_list", size=size)
    if name == "RunEndEncoded":
        runs, values = children
        return values.type._replace(label=f"RunEndEncoded({runs.type.label}, {values.type.label})")
    if name == "Map":
        entries = children[0]
        check(entries.type.shape == "struct" and len(entries.children) == 2, "a map's child is not a struct of key and value")
        entries.type = entries.type._replace(shape="entries")
    return Type(label, "list")


def union_type(t: Table, children: list) -> Type:
    shape = pick(("sparse", "dense"), t.number(0, "h"), "union mode")
    ids = tuple(t.buffer.number(at, "i") for at in t.vector(1, 4)) if t.find(1) else tuple(range(len(children)))
    check(len(ids) == len(children), f"there are {len(ids)} type ids but {len(children)} children")
    check(len(set(ids)) == len(ids) and all(0 <= i < 128 for i in ids), f"type ids {ids} are not distinct and within 0 to 127")
    members = ", ".join(f"{i}: {signature([child])}" for i, child in zip(ids, children))
    return Type(f"Union({shape}, {members})", shape, type_ids=ids)


def signature(children: list) -> str:
    return ", ".join(f"{child.name}: {child.type.label}{'' if child.nullable else ' not null'}" for child in children)


# By their number in the flatbuffer's union.
LEAVES = {1: "Null", 2: "Int", 3: "FloatingPoint", 4: "Binary", 5: "Utf8", 6: "Bool", 7: "Decimal", 8: "Date", 9: "Time", 10: "Timestamp",
          11: "Interval", 15: "FixedSizeBinary", 18: "Duration", 19: "LargeBinary", 20: "LargeUtf8", 23: "BinaryView", 24: "Utf8View"}
NESTED = {12: "List", 13: "Struct", 14: "Union", 16: "FixedSizeList", 17: "Map", 21: "LargeList", 22: "RunEndEncoded", 25: "ListView",
          26: "LargeListView"}


def read_field(table: Table, depth: int) -> Field:
    check(depth < MAX_DEPTH, f"types are nested more than {MAX_DEPTH} deep")
    name = table.string(0)
    with place(f"field {name!r}"):
        children = [read_field(child, depth + 1) for child in table.tables(5)]
        number, t = table.number(2, "B"), table.table(3)
        check(t is not None, "its type is missing")
        check(number in LEAVES or number in NESTED, f"type number {number} is unknown")
        if number in LEAVES:
            check(not children, f"{LEAVES[number]} has {len(children)} children")
            kind = leaf_type(LEAVES[number], t)
        else:
            kind = nested_type(NESTED[number], t, children)
            if NESTED[number] == "RunEndEncoded":
                children = children[1].children
        dictionary = table.table(4)
        if dictionary is not None:
            keys = dictionary.table(1)
            key = int_type(keys).label if keys else "Int32"
            ordered = ", ordered" if dictionary.number(2, "?", False) else ""
            kind = kind._replace(label=f"Dictionary({key}, {kind.label}{ordered})")
        return Field(name, table.number(1, "?", False), kind, children, table.metadata(6))


def read_schema(data: bytes):
    """The fields and the schema's metadata."""
    buffer = Flatbuffer(data)
    message = Table(buffer, buffer.number(0, "I"))
    schema = message.table(2)
    check(message.number(1, "B") == 1 and schema is not None, "the message is not a Schema")
    return [read_field(field, 0) for field in schema.tables(1)], schema.metadata(2)


def preorder(field: Field) -> list:
    return [field] + [node for child in field.children for node in preorder(child)]

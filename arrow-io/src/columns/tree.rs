//! The nodes of a column's type, and which buffers each has.

use arrow::datatypes::{DataType, FieldRef, IntervalUnit, Schema, UnionFields, UnionMode};
use codec_core::Order;

use crate::error::TableError;

/// Type trees deeper than this are refused, so that no recursion over one can exhaust the stack.
const MAX_DEPTH: usize = 64;

/// FixedSizeBinary up to this many bytes is stored as limbs.
const MAX_LIMB_BYTES: usize = 64;

/// One field of a column's type tree.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its number in preorder; the column itself is 0.
    pub index: u32,
    /// Names from the column down, joined by dots.
    pub path: String,
    /// The field as the schema has it.
    pub field: FieldRef,
    /// The field's type without dictionaries and run ends around it.
    pub data_type: DataType,
    /// Which buffers it has.
    pub shape: Shape,
    /// Its children in the type's order.
    pub children: Vec<Self>,
}

/// Which buffers a node has besides validity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// No buffers: every slot is null.
    Null,
    /// One value of 8 bits, 0 or 1.
    Boolean,
    /// Fixed-width values, in one or more limbs.
    Limbs(Vec<Limb>),
    /// That many bytes a slot.
    FixedBytes(usize),
    /// Strings or binary values: ends and bytes, or codes.
    Bytes,
    /// Ends; one child.
    List,
    /// One child with that many slots a slot.
    FixedList(usize),
    /// Children with as many slots.
    Struct,
    /// Type ids; children with as many slots.
    SparseUnion(Vec<i8>),
    /// Type ids; children with the slots that theirs selects.
    DenseUnion(Vec<i8>),
}

/// One limb of a fixed-width value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limb {
    /// Bits.
    pub width: u8,
    /// Where it begins in the value, in bytes.
    pub offset: usize,
    /// How its values compare.
    pub order: Order,
}

impl Node {
    /// The trees of all columns of `schema`.
    ///
    /// # Errors
    /// A type that cannot be stored, named by its column.
    pub fn columns(schema: &Schema) -> Result<Vec<Self>, TableError> {
        schema.fields().iter().map(Self::column).collect()
    }

    /// The tree of one column.
    ///
    /// # Errors
    /// A type that cannot be stored.
    pub fn column(field: &FieldRef) -> Result<Self, TableError> {
        Self::new(field, field.name().clone(), &mut 0, 0)
    }

    /// This node and all below it, in preorder.
    #[must_use]
    pub fn preorder(&self) -> Vec<&Self> {
        let mut nodes = vec![self];
        for child in &self.children {
            nodes.extend(child.preorder());
        }
        nodes
    }

    /// Bytes of one fixed-width value; 0 for other shapes.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        match &self.shape {
            Shape::Limbs(limbs) => limbs.iter().map(|limb| usize::from(limb.width / 8)).sum(),
            Shape::FixedBytes(bytes) => *bytes,
            _ => 0,
        }
    }

    fn new(field: &FieldRef, path: String, next_index: &mut u32, depth: usize) -> Result<Self, TableError> {
        let unsupported = |reason| TableError::UnsupportedType {
            column: path.clone(),
            data_type: field.data_type().to_string(),
            reason,
        };
        if depth > MAX_DEPTH {
            return Err(unsupported("it is nested too deeply"));
        }
        let index = *next_index;
        *next_index += 1;
        let data_type = plain_type(field.data_type()).clone();
        let (shape, fields) = shape(&data_type).map_err(unsupported)?;
        let children = fields
            .iter()
            .map(|child| Self::new(child, format!("{path}.{}", child.name()), next_index, depth + 1))
            .collect::<Result<_, _>>()?;
        Ok(Self { index, path, field: field.clone(), data_type, shape, children })
    }
}

/// The type of the values below dictionaries and run ends.
#[must_use]
pub fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        plain => plain,
    }
}

/// The shape of a plain type and the fields of its children.
fn shape(data_type: &DataType) -> Result<(Shape, Vec<FieldRef>), &'static str> {
    let leaf = |shape| Ok((shape, Vec::new()));
    let values = |width, order| leaf(Shape::Limbs(vec![Limb { width, offset: 0, order }]));
    match data_type {
        DataType::Null => leaf(Shape::Null),
        DataType::Boolean => leaf(Shape::Boolean),
        DataType::Int8 => values(8, Order::Signed),
        DataType::Int16 => values(16, Order::Signed),
        DataType::Int32
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Decimal32(..)
        | DataType::Interval(IntervalUnit::YearMonth) => values(32, Order::Signed),
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => values(64, Order::Signed),
        DataType::UInt8 => values(8, Order::Unsigned),
        DataType::UInt16 => values(16, Order::Unsigned),
        DataType::UInt32 => values(32, Order::Unsigned),
        DataType::UInt64 => values(64, Order::Unsigned),
        DataType::Float16 => values(16, Order::Float),
        DataType::Float32 => values(32, Order::Float),
        DataType::Float64 => values(64, Order::Float),
        DataType::Interval(IntervalUnit::DayTime) => leaf(Shape::Limbs(signed_limbs(&[32, 32]))),
        DataType::Interval(IntervalUnit::MonthDayNano) => leaf(Shape::Limbs(signed_limbs(&[32, 32, 64]))),
        DataType::Decimal128(..) => leaf(Shape::Limbs(integer_limbs(2))),
        DataType::Decimal256(..) => leaf(Shape::Limbs(integer_limbs(4))),
        DataType::FixedSizeBinary(bytes) => match usize::try_from(*bytes) {
            Ok(bytes) if bytes <= MAX_LIMB_BYTES => leaf(Shape::Limbs(binary_limbs(bytes))),
            Ok(bytes) => leaf(Shape::FixedBytes(bytes)),
            Err(_) => Err("its length is negative"),
        },
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => leaf(Shape::Bytes),
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child) => Ok((Shape::List, vec![child.clone()])),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => Ok((Shape::List, vec![entries.clone()])),
            _ => Err("its entries are not pairs of key and value"),
        },
        DataType::FixedSizeList(child, length) => match usize::try_from(*length) {
            Ok(length) => Ok((Shape::FixedList(length), vec![child.clone()])),
            Err(_) => Err("its length is negative"),
        },
        DataType::Struct(fields) => Ok((Shape::Struct, fields.iter().cloned().collect())),
        DataType::Union(fields, UnionMode::Sparse) => {
            Ok((Shape::SparseUnion(type_ids(fields)), union_children(fields)))
        }
        DataType::Union(fields, UnionMode::Dense) => {
            Ok((Shape::DenseUnion(type_ids(fields)), union_children(fields)))
        }
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => Err("it is not plain"),
    }
}

/// Limbs of the given widths, each signed on its own.
fn signed_limbs(widths: &[u8]) -> Vec<Limb> {
    limbs(widths, |_| Order::Signed)
}

/// Limbs of 64 bits of one wide integer: the last carries the sign.
fn integer_limbs(count: usize) -> Vec<Limb> {
    limbs(&vec![64; count], |index| if index + 1 == count { Order::Signed } else { Order::Unsigned })
}

/// As many limbs of 64 bits as fit into `bytes`, then narrower ones.
fn binary_limbs(bytes: usize) -> Vec<Limb> {
    let mut widths = vec![64; bytes / 8];
    widths.extend([32, 16, 8].into_iter().filter(|width| bytes & usize::from(width / 8) != 0));
    limbs(&widths, |_| Order::Unsigned)
}

fn limbs(widths: &[u8], order: impl Fn(usize) -> Order) -> Vec<Limb> {
    let mut offset = 0;
    let limb = |(index, &width): (usize, &u8)| {
        let limb = Limb { width, offset, order: order(index) };
        offset += usize::from(width / 8);
        limb
    };
    widths.iter().enumerate().map(limb).collect()
}

fn type_ids(fields: &UnionFields) -> Vec<i8> {
    fields.iter().map(|(id, _)| id).collect()
}

fn union_children(fields: &UnionFields) -> Vec<FieldRef> {
    fields.iter().map(|(_, field)| field.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limbs_of(data_type: DataType) -> Vec<(u8, usize)> {
        match shape(&data_type).unwrap().0 {
            Shape::Limbs(limbs) => limbs.iter().map(|limb| (limb.width, limb.offset)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn wide_values_are_cut_into_limbs() {
        assert_eq!(limbs_of(DataType::Decimal256(76, 0)), [(64, 0), (64, 8), (64, 16), (64, 24)]);
        assert_eq!(limbs_of(DataType::FixedSizeBinary(15)), [(64, 0), (32, 8), (16, 12), (8, 14)]);
        assert_eq!(limbs_of(DataType::FixedSizeBinary(0)), []);
        assert_eq!(shape(&DataType::FixedSizeBinary(65)).unwrap().0, Shape::FixedBytes(65));
    }
}

//! Collected values encoded as blocks.

use codec_core::{
    Choice, EncodeOptions, EncodedBlock, Kind, Layout, Order, OwnedValues, Registry, Value, Values,
    encode_values, values_per_block,
};
use format_spec::{Encoding, Role};

use super::build::{Coding, Content, NodeBuilder};
use super::dictionary::StringDictionary;
use super::statistics;
use super::tree::{Node, Shape};
use crate::error::TableError;

/// A node of one row group, encoded.
#[derive(Debug)]
pub struct EncodedNode {
    /// Slots.
    pub slot_count: u64,
    /// Nulls.
    pub null_count: u64,
    /// NaN values.
    pub nan_count: u64,
    /// What Arrow's own buffers of the node would take.
    pub arrow_bytes: u64,
    /// Direct, or codes of the node's dictionary.
    pub encoding: Encoding,
    /// Min and max.
    pub extremes: Option<(Vec<u8>, Vec<u8>)>,
    /// The buffers in the order of SPEC.md section 6.
    pub buffers: Vec<EncodedBuffer>,
}

/// A buffer, encoded.
#[derive(Debug)]
pub struct EncodedBuffer {
    /// What it is to its node.
    pub role: Role,
    /// Which limb.
    pub limb: u8,
    /// Kind and width.
    pub layout: Layout,
    /// Values.
    pub value_count: u64,
    /// Values in every block but the last; 0 without blocks.
    pub values_per_block: u32,
    /// The blocks.
    pub blocks: Vec<EncodedBlock>,
}

/// How one column is encoded.
#[derive(Debug, Clone, Copy)]
pub struct ColumnEncoder<'a> {
    /// The codecs.
    pub registry: &'a Registry,
    /// Sizes, and the choice of codecs for this column.
    pub options: EncodeOptions,
}

impl ColumnEncoder<'_> {
    /// Encodes what `builder` and those below it have collected, in preorder.
    ///
    /// # Errors
    /// A value that no block can hold.
    pub fn encode(&self, node: &Node, builder: &mut NodeBuilder) -> Result<Vec<EncodedNode>, TableError> {
        settle_codes(builder);
        let mut nodes = vec![self.encode_node(node, builder)?];
        for (child, builder) in node.children.iter().zip(&mut builder.children) {
            nodes.extend(self.encode(child, builder)?);
        }
        Ok(nodes)
    }

    /// Encodes a dictionary's entries: ends, bytes, and the ranks unless the entries ascend.
    ///
    /// # Errors
    /// An entry that no block can hold.
    pub fn encode_dictionary(
        &self,
        node: &Node,
        dictionary: &StringDictionary,
    ) -> Result<Vec<EncodedBuffer>, TableError> {
        let ends: Vec<u64> = dictionary.ends().iter().map(|&end| end as u64).collect();
        let mut buffers = vec![self.ends(node, &ends)?];
        buffers.push(self.bytes(node, dictionary.bytes())?);
        if !dictionary.is_ordered() {
            buffers.push(self.values(
                node,
                Role::Rank,
                0,
                Order::Unsigned,
                Values::U32(&dictionary.ranks()),
            )?);
        }
        Ok(buffers)
    }

    fn encode_node(&self, node: &Node, builder: &NodeBuilder) -> Result<EncodedNode, TableError> {
        let mut buffers = Vec::new();
        if builder.slot_count > 0 {
            if builder.null_count > 0 && node.shape != Shape::Null {
                buffers.push(self.values(
                    node,
                    Role::Validity,
                    0,
                    Order::Unsigned,
                    Values::U8(&builder.validity),
                )?);
            }
            self.encode_content(node, &builder.content, &mut buffers)?;
        }
        let coded = matches!(builder.content, Content::Codes(_)) && builder.slot_count > 0;
        Ok(EncodedNode {
            slot_count: builder.slot_count,
            null_count: builder.null_count,
            nan_count: builder.nan_count,
            arrow_bytes: builder.arrow_bytes,
            encoding: if coded { Encoding::Dictionary } else { Encoding::Direct },
            extremes: statistics::extremes(node, builder),
            buffers,
        })
    }

    fn encode_content(
        &self,
        node: &Node,
        content: &Content,
        buffers: &mut Vec<EncodedBuffer>,
    ) -> Result<(), TableError> {
        match content {
            Content::None => {}
            Content::Limbs(values) => {
                for (limb, values) in (0_u8..).zip(values) {
                    let order = limb_order(&node.shape, limb);
                    buffers.push(self.values(node, Role::Values, limb, order, values.as_values())?);
                }
            }
            Content::FixedBytes(bytes) => buffers.push(self.bytes(node, bytes)?),
            Content::Bytes { ends, bytes } => {
                buffers.push(self.ends(node, ends)?);
                buffers.push(self.bytes(node, bytes)?);
            }
            Content::Codes(codes) => {
                let codes = narrowed_codes(codes);
                buffers.push(self.values(node, Role::Codes, 0, Order::Unsigned, codes.as_values())?);
            }
            Content::Ends(ends) => buffers.push(self.ends(node, ends)?),
            Content::TypeIds(ids) => {
                buffers.push(self.values(node, Role::TypeIds, 0, Order::Unsigned, Values::U8(ids))?);
            }
        }
        Ok(())
    }

    fn ends(&self, node: &Node, ends: &[u64]) -> Result<EncodedBuffer, TableError> {
        let narrow: Result<Vec<u32>, _> = ends.iter().map(|&end| u32::try_from(end)).collect();
        match narrow {
            Ok(ends) => self.values(node, Role::Ends, 0, Order::Unsigned, Values::U32(&ends)),
            Err(_) => self.values(node, Role::Ends, 0, Order::Unsigned, Values::U64(ends)),
        }
    }

    fn bytes(&self, node: &Node, bytes: &[u8]) -> Result<EncodedBuffer, TableError> {
        self.buffer(node, Role::Bytes, 0, Kind::Bytes, Order::None, Values::U8(bytes))
    }

    fn values(
        &self,
        node: &Node,
        role: Role,
        limb: u8,
        order: Order,
        values: Values<'_>,
    ) -> Result<EncodedBuffer, TableError> {
        self.buffer(node, role, limb, Kind::Values, order, values)
    }

    fn buffer(
        &self,
        node: &Node,
        role: Role,
        limb: u8,
        kind: Kind,
        order: Order,
        values: Values<'_>,
    ) -> Result<EncodedBuffer, TableError> {
        let layout = Layout { kind, value_width: values.value_width() };
        let options = self.options_for(role);
        let blocks = encode_values(values, kind, order, self.registry, &options)
            .map_err(|source| TableError::Encode { column: node.path.clone(), source })?;
        let values_per_block = if blocks.is_empty() { 0 } else { values_per_block(&options, layout) };
        Ok(EncodedBuffer { role, limb, layout, value_count: values.len() as u64, values_per_block, blocks })
    }

    /// A codec that was asked for by name is for the column's values; validity, ends and ids always get the best.
    fn options_for(&self, role: Role) -> EncodeOptions {
        let choice = match role {
            Role::Values | Role::Codes | Role::Bytes => self.options.choice,
            Role::Validity | Role::Ends | Role::TypeIds | Role::Rank => match self.options.choice {
                Choice::Prefer(_) => Choice::Auto,
                automatic => automatic,
            },
        };
        EncodeOptions { choice, ..self.options }
    }
}

fn limb_order(shape: &Shape, limb: u8) -> Order {
    match shape {
        Shape::Limbs(limbs) => limbs.get(usize::from(limb)).map_or(Order::None, |limb| limb.order),
        _ => Order::Unsigned,
    }
}

/// The codes in the narrowest of 8, 16 and 32 bits.
fn narrowed_codes(codes: &[u32]) -> OwnedValues {
    let most = codes.iter().max().copied().unwrap_or(0);
    if most <= u8::MAX.into() {
        OwnedValues::U8(codes.iter().map(|&code| u8::from_u32(code)).collect())
    } else if most <= u16::MAX.into() {
        OwnedValues::U16(codes.iter().map(|&code| u16::from_u32(code)).collect())
    } else {
        OwnedValues::U32(codes.to_vec())
    }
}

/// Ends a row group's codes: the nulls before its first value get that value's code; a growing dictionary that does not pay in its first row group is given up.
fn settle_codes(builder: &mut NodeBuilder) {
    let value_count = builder.slot_count;
    let Content::Codes(codes) = &mut builder.content else { return };
    let first = codes.iter().copied().find(|&code| code != u32::MAX);
    for code in codes.iter_mut().take_while(|code| **code == u32::MAX) {
        *code = first.unwrap_or(0);
    }
    if first.is_none() {
        // Only nulls: there may be no entry that a code could name.
        builder.give_up_codes_for_now();
        return;
    }
    let Coding::Growing { dictionary, committed: false, .. } = &builder.coding else {
        return;
    };
    let valid = |slot: usize| builder.null_count == 0 || builder.validity.get(slot) == Some(&1);
    let value_bytes = codes
        .iter()
        .enumerate()
        .filter(|(slot, _)| valid(*slot))
        .map(|(_, &code)| dictionary.entry(code).len() as u64)
        .sum();
    if dictionary.pays(value_count, value_bytes) {
        builder.coding.commit();
    } else {
        builder.give_up_codes();
    }
}

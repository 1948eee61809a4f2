//! What JSON values look like: the schema they need, and whether they fit a given one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Integers from here on are not all distinct as 64 bit floats.
const EXACT_FLOAT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// What was seen at one place of the rows.
#[derive(Debug, Default)]
pub(super) struct Shape {
    boolean: bool,
    /// An integer that fits `i64`.
    integer: bool,
    negative: bool,
    /// An integer that fits `u64`, but not `i64`.
    large: bool,
    float: bool,
    /// A number that no integer column can hold exactly.
    fraction: bool,
    text: bool,
    items: Option<Box<Shape>>,
    members: Option<Members>,
    /// The first row with a scalar, a list, an object.
    first_rows: [Option<u64>; 3],
}

/// The members of objects, in the order in which they first came.
#[derive(Debug, Default)]
struct Members {
    shapes: Vec<(String, Shape)>,
    by_name: HashMap<String, usize>,
}

const SCALAR: usize = 0;
const LIST: usize = 1;
const OBJECT: usize = 2;

impl Shape {
    /// Adds one line, which must be one object. The error says what is wrong with it.
    pub(super) fn add(&mut self, line: &[u8], row: u64) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_slice(line);
        Seed { shape: self, row, is_row: true }.deserialize(&mut json).and_then(|()| json.end()).map_err(
            |error| {
                let text = error.to_string();
                let problem = text.split_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
                format!("not a JSON object, at byte {} of its line: {problem}", error.column())
            },
        )
    }

    /// The schema for the rows added. The error names a column whose values have no common type.
    pub(super) fn schema(&self) -> Result<Schema, String> {
        Ok(Schema::new(match &self.members {
            Some(members) => members.fields("")?,
            None => Fields::empty(),
        }))
    }

    fn data_type(&self, path: &str) -> Result<DataType, String> {
        self.check_is_of_one_kind(path)?;
        if let Some(members) = &self.members {
            return Ok(DataType::Struct(members.fields(&format!("{path}."))?));
        }
        if let Some(items) = &self.items {
            let item_type = items.data_type(&format!("{path}[]"))?;
            return Ok(DataType::List(Arc::new(Field::new_list_field(item_type, true))));
        }
        Ok(self.scalar_type())
    }

    fn check_is_of_one_kind(&self, path: &str) -> Result<(), String> {
        let kinds = ["a plain value", "a list", "an object"];
        let mut seen = self.first_rows.iter().zip(kinds).filter_map(|(row, kind)| Some((kind, (*row)?)));
        match (seen.next(), seen.next()) {
            (Some((kind, row)), Some((other, other_row))) => Err(format!(
                "column {path:?} is {kind} in row {row} and {other} in row {other_row}, which have no common type; make \
                 the rows alike"
            )),
            _ => Ok(()),
        }
    }

    fn scalar_type(&self) -> DataType {
        let number = self.integer || self.large || self.float;
        match (self.text, self.boolean, number) {
            (false, false, false) => DataType::Null,
            (false, true, false) => DataType::Boolean,
            // Beside text, numbers and booleans keep their spelling.
            (true, _, _) | (false, true, true) => DataType::Utf8,
            (false, false, true) => self.number_type(),
        }
    }

    fn number_type(&self) -> DataType {
        match (self.float, self.large, self.negative) {
            (true, _, _) => DataType::Float64,
            (false, false, _) => DataType::Int64,
            (false, true, false) => DataType::UInt64,
            // No integer type holds both.
            (false, true, true) => DataType::Float64,
        }
    }

    /// What keeps the rows added from fitting columns, as far as the JSON reader would not notice: it drops fractions from
    /// integers.
    pub(super) fn conflict(&self, fields: &Fields) -> Option<String> {
        self.member_conflict(fields, "")
    }

    fn member_conflict(&self, fields: &Fields, prefix: &str) -> Option<String> {
        let members = self.members.as_ref()?;
        members.shapes.iter().find_map(|(name, shape)| {
            let path = format!("{prefix}{name}");
            match fields.iter().find(|field| field.name() == name) {
                None => Some(format!("column {path:?} is not in the schema")),
                Some(field) => shape.value_conflict(field.data_type(), &path),
            }
        })
    }

    fn value_conflict(&self, data_type: &DataType, path: &str) -> Option<String> {
        match data_type {
            DataType::Struct(fields) => self.member_conflict(fields, &format!("{path}.")),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                self.items.as_ref()?.value_conflict(item.data_type(), &format!("{path}[]"))
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else { return None };
                let value = fields.get(1)?;
                let members = self.members.as_ref()?;
                members.shapes.iter().find_map(|(name, shape)| {
                    shape.value_conflict(value.data_type(), &format!("{path}.{name}"))
                })
            }
            DataType::Dictionary(_, values) => self.value_conflict(values, path),
            DataType::RunEndEncoded(_, values) => self.value_conflict(values.data_type(), path),
            other if self.fraction && (other.is_integer() || other.is_temporal()) => {
                Some(format!("column {path:?} holds a number that is no {other}"))
            }
            _ => None,
        }
    }

    fn note(&mut self, kind: usize, row: u64) {
        if let Some(first) = self.first_rows.get_mut(kind) {
            first.get_or_insert(row);
        }
    }
}

impl Members {
    fn shape(&mut self, name: String) -> Option<&mut Shape> {
        let index = match self.by_name.entry(name) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.shapes.push((new.key().clone(), Shape::default()));
                *new.insert(self.shapes.len() - 1)
            }
        };
        self.shapes.get_mut(index).map(|(_, shape)| shape)
    }

    fn fields(&self, prefix: &str) -> Result<Fields, String> {
        let fields = self
            .shapes
            .iter()
            .map(|(name, shape)| Ok(Field::new(name, shape.data_type(&format!("{prefix}{name}"))?, true)));
        fields.collect::<Result<Vec<_>, String>>().map(Fields::from)
    }
}

/// Reads one JSON value into a shape.
struct Seed<'a> {
    shape: &'a mut Shape,
    row: u64,
    /// Whether the value is a whole row, so must be an object.
    is_row: bool,
}

impl Seed<'_> {
    fn scalar<E: Error>(self, set: impl FnOnce(&mut Shape)) -> Result<(), E> {
        if self.is_row {
            return Err(E::custom("a plain value stands where the row's object should be"));
        }
        self.shape.note(SCALAR, self.row);
        set(self.shape);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.scalar(|shape| shape.boolean = true)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(|shape| {
            shape.integer = true;
            shape.negative |= value < 0;
        })
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(|shape| match i64::try_from(value) {
            Ok(_) => shape.integer = true,
            Err(_) => shape.large = true,
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(|shape| {
            shape.float = true;
            shape.fraction |= value.fract() != 0.0 || value.abs() >= EXACT_FLOAT_INTEGERS;
        })
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.scalar(|shape| shape.text = true)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.is_row {
            return Err(E::custom("null stands where the row's object should be"));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.is_row {
            return Err(A::Error::custom("a list stands where the row's object should be"));
        }
        self.shape.note(LIST, self.row);
        let items = self.shape.items.get_or_insert_default();
        while list.next_element_seed(Seed { shape: items, row: self.row, is_row: false })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.shape.note(OBJECT, self.row);
        let members = self.shape.members.get_or_insert_default();
        while let Some(name) = object.next_key::<String>()? {
            if let Some(shape) = members.shape(name) {
                object.next_value_seed(Seed { shape, row: self.row, is_row: false })?;
            }
        }
        Ok(())
    }
}

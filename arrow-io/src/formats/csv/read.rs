//! Columns of typed values from columns of text.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, NullArray, RecordBatch, RecordBatchOptions, RecordBatchReader, Scalar,
    StringViewArray,
};
use arrow::compute::kernels::cmp::eq;
use arrow::compute::{CastOptions, can_cast_types, cast_with_options, nullif};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::super::FormatError;
use super::super::inference::Origin;
use super::super::options::ReadOptions;

/// Characters of a field that a message shows.
const SHOWN_CHARS: usize = 60;

/// Turns batches of text columns into batches of a schema.
pub(super) struct CsvReader<R> {
    input: String,
    records: R,
    schema: SchemaRef,
    origin: Origin,
    null_values: Vec<String>,
    empty_is_null: bool,
    row: u64,
}

/// Checks that text can be cast to every type of the schema.
pub(super) fn check_schema(input: &str, schema: &Schema) -> Result<(), FormatError> {
    match schema.fields().iter().find(|field| !is_castable(field.data_type())) {
        None => Ok(()),
        Some(field) => Err(FormatError::given_schema(
            input,
            field.name(),
            field.data_type(),
            "which cannot be read from text; read it as Utf8",
        )),
    }
}

impl<R> CsvReader<R> {
    pub(super) fn new(
        input: String,
        records: R,
        schema: SchemaRef,
        origin: Origin,
        options: &ReadOptions,
    ) -> Self {
        Self {
            input,
            records,
            schema,
            origin,
            null_values: options.null_values.clone(),
            empty_is_null: options.empty_is_null,
            row: options.rows.as_ref().map_or(0, |rows| rows.start),
        }
    }

    fn typed(&mut self, texts: &RecordBatch) -> Result<RecordBatch, FormatError> {
        let schema = self.schema.clone();
        for (field, text) in schema.fields().iter().zip(texts.columns()) {
            self.check_utf8(field, text.as_string_view())?;
        }
        let columns = schema
            .fields()
            .iter()
            .zip(texts.columns())
            .map(|(field, text)| self.typed_column(field, text.as_string_view()))
            .collect::<Result<Vec<_>, _>>()?;
        self.row += texts.num_rows() as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(texts.num_rows()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| self.malformed(&error))
    }

    fn typed_column(&self, field: &Field, text: &StringViewArray) -> Result<ArrayRef, FormatError> {
        let text = self.with_nulls(field, text)?;
        if *field.data_type() == DataType::Null {
            return match (0..text.len()).find(|index| text.is_valid(*index)) {
                Some(index) => Err(self.misfit(field, text.value(index), index)),
                None => Ok(Arc::new(NullArray::new(text.len()))),
            };
        }
        let options = CastOptions { safe: true, ..CastOptions::default() };
        let column = cast_with_options(&text, field.data_type(), &options).map_err(|error| {
            FormatError::malformed(
                &self.input,
                format!("column {:?} from row {}: {error}", field.name(), self.row),
            )
        })?;
        self.check_nulls(field, &text, &column)?;
        Ok(column)
    }

    /// Arrow's reader proves that the fields of a batch are UTF-8 all together: a character may begin in one field and end in the next.
    fn check_utf8(&self, field: &Field, text: &StringViewArray) -> Result<(), FormatError> {
        let bytes = text.clone().to_binary_view();
        let is_text = |value: Option<&[u8]>| value.is_none_or(|value| str::from_utf8(value).is_ok());
        match bytes.iter().position(|value| !is_text(value)) {
            None => Ok(()),
            Some(index) => {
                let (row, name) = (self.row + index as u64, field.name());
                Err(FormatError::malformed(&self.input, format!("row {row}, column {name:?} is not UTF-8")))
            }
        }
    }

    /// The text with nulls where the options say so. It arrives with a null for each empty field.
    fn with_nulls(&self, field: &Field, text: &StringViewArray) -> Result<StringViewArray, FormatError> {
        let mut text = text.clone();
        if !self.empty_is_null && holds_text(field.data_type()) {
            let (views, buffers, _) = text.into_parts();
            text = StringViewArray::try_new(views, buffers, None).map_err(|error| self.malformed(&error))?;
        }
        for null in &self.null_values {
            let is_null = eq(&text, &Scalar::new(StringViewArray::from(vec![null.as_str()])));
            let cleared = is_null
                .and_then(|is_null| nullif(&text, &is_null))
                .map_err(|error| self.malformed(&error))?;
            text = cleared.as_string_view().clone();
        }
        Ok(text)
    }

    /// A field that is there but came out null did not parse.
    fn check_nulls(
        &self,
        field: &Field,
        text: &StringViewArray,
        column: &ArrayRef,
    ) -> Result<(), FormatError> {
        let nulls = column.logical_nulls();
        let null_count = nulls.as_ref().map_or(0, |nulls| nulls.null_count());
        if null_count > text.null_count() {
            let is_null = |index: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(index));
            if let Some(index) = (0..text.len()).find(|index| is_null(*index) && text.is_valid(*index)) {
                return Err(self.misfit(field, text.value(index), index));
            }
        }
        if null_count > 0
            && !field.is_nullable()
            && let Some(index) = (0..text.len()).find(|index| text.is_null(*index))
        {
            return Err(self.row_error(index, format!("column {:?} is null, but must not be", field.name())));
        }
        Ok(())
    }

    fn misfit(&self, field: &Field, value: &str, index: usize) -> FormatError {
        let shown: String = value.chars().take(SHOWN_CHARS).collect();
        let dots = if shown.len() < value.len() { "…" } else { "" };
        self.row_error(
            index,
            format!("column {:?}: \"{shown}{dots}\" is no {}", field.name(), field.data_type()),
        )
    }

    fn row_error(&self, index: usize, problem: String) -> FormatError {
        FormatError::Row {
            input: self.input.clone(),
            row: self.row + index as u64,
            problem,
            remedy: format!("{}, or add the text to the null values", self.origin),
        }
    }

    fn malformed(&self, error: &ArrowError) -> FormatError {
        FormatError::malformed(&self.input, format!("from row {}: {error}", self.row))
    }
}

fn is_castable(data_type: &DataType) -> bool {
    !data_type.is_nested() && (*data_type == DataType::Null || can_cast_types(&DataType::Utf8View, data_type))
}

fn holds_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => holds_text(values),
        DataType::RunEndEncoded(_, values) => holds_text(values.data_type()),
        other => other.is_string() || other.is_binary(),
    }
}

impl<R: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for CsvReader<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let typed = match self.records.next()? {
            Ok(texts) => self.typed(&texts),
            Err(error) => Err(self.malformed(&error)),
        };
        Some(typed.map_err(ArrowError::from))
    }
}

impl<R: Iterator<Item = Result<RecordBatch, ArrowError>>> RecordBatchReader for CsvReader<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

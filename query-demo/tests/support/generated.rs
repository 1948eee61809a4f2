//! The tables of the Star Schema Benchmark in memory.

use arrow_io::table::{Table, TableWriter, WriterOptions};
use codec_core::Choice;
use container::Source;
use datagen::{Scale, ssb};
use query_demo::Session;
use query_demo::ssb::LINEORDER_COLUMNS;

/// A session over all five tables.
pub fn session(scale: f64, choice: Choice) -> Session {
    let generator = ssb::Generator::new(Scale::new(scale).unwrap(), ssb::Dialect::Maintained);
    let mut session = Session::new().unwrap();
    for table in ssb::Table::ALL {
        let mut options = WriterOptions::default();
        options.encode.choice = choice;
        options.row_group_rows = 1 << 20;
        let schema = generator.schema(table);
        let columns: Vec<usize> = match table {
            ssb::Table::Lineorder => {
                LINEORDER_COLUMNS.iter().map(|name| schema.index_of(name).unwrap()).collect()
            }
            _ => (0..schema.fields().len()).collect(),
        };
        let schema = schema.project(&columns).unwrap().into();
        let mut writer = TableWriter::new(Vec::new(), schema, &codecs::REGISTRY, options).unwrap();
        for batch in generator.stream(table, 2, 65_536).unwrap() {
            writer.write(&batch.unwrap().project(&columns).unwrap()).unwrap();
        }
        let (bytes, _) = writer.finish().unwrap();
        session
            .add(table.name(), Table::from_source(Source::memory(bytes), &codecs::REGISTRY).unwrap())
            .unwrap();
    }
    session
}

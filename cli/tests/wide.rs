//! A table of very many columns: everything works, and one column is read without the others.
#![allow(clippy::unwrap_used)]

mod program;

use std::fmt::Write;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};

use cb2t::ReadOptions;
use program::Folder;

const COLUMNS: usize = 14_000;
const ROWS: usize = 4;

/// Whole numbers, decimals and text by turns.
fn value(column: usize, row: usize) -> String {
    match column % 3 {
        0 => (column * row).to_string(),
        1 => format!("{}.5", column + row),
        _ => format!("text {}", (column + row) % 5),
    }
}

fn packed() -> Folder {
    let folder = Folder::new();
    let mut text = String::new();
    for column in 0..COLUMNS {
        write!(text, "{}c{column}", if column == 0 { "" } else { "," }).unwrap();
    }
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            write!(text, "{}{}", if column == 0 { "\n" } else { "," }, value(column, row)).unwrap();
        }
    }
    folder.write("in.csv", text + "\n");
    folder.run("pack in.csv -o in.cb2t").done();
    folder
}

/// A file that remembers which bytes were read.
struct Watched<R> {
    inner: R,
    position: u64,
    reads: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.reads.lock().unwrap().push((self.position, count as u64));
        self.position += count as u64;
        Ok(count)
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.inner.seek(to)?;
        Ok(self.position)
    }
}

#[test]
fn every_command_manages_fourteen_thousand_columns() {
    let folder = packed();
    let schema = folder.run("schema in.cb2t");
    assert_eq!(schema.done().lines().count(), COLUMNS);
    assert!(schema.text().starts_with("c0: Int64\nc1: Float64\nc2: Utf8\n"));
    let head = folder.run("head in.cb2t --columns c13999,c2 --json -n 1");
    assert_eq!(head.done(), "{\"c13999\":13999.5,\"c2\":\"text 2\"}\n");
    assert!(folder.run("verify in.cb2t").done().contains("sound: 4 rows"));
    assert_eq!(folder.run("stats in.cb2t").done().lines().count(), 1 + COLUMNS);
    folder.run("unpack in.cb2t -o out.csv").done();
    folder.run("diff in.csv out.csv").done();
    assert!(folder.run("diff in.csv in.cb2t").done().starts_with("equal: 4 rows, 14000 columns"));
}

#[test]
fn one_column_is_read_without_the_others() {
    let folder = packed();
    let file_bytes = std::fs::metadata(folder.path("in.cb2t")).unwrap().len();
    let reads = Arc::new(Mutex::new(Vec::new()));
    let inner = std::fs::File::open(folder.path("in.cb2t")).unwrap();
    let table = cb2t::open_stream(Watched { inner, position: 0, reads: reads.clone() }).unwrap();
    let opening: Vec<(u64, u64)> = std::mem::take(&mut reads.lock().unwrap());
    // Opening reads the header, what is before the end, and the footer: nothing of a block, which come first.
    let footer_bytes = table.schema().fields().len() as u64 * 24;
    let opening_bytes: u64 = opening.iter().map(|(_, count)| count).sum();
    assert!(
        opening_bytes > footer_bytes && opening_bytes < file_bytes / 3,
        "{opening_bytes} of {file_bytes}"
    );
    let first_block = table.inspect(0).unwrap()[0].buffers[0].blocks[0].offset;
    assert!(
        opening.iter().all(|(start, count)| start + count <= first_block || *start > file_bytes / 2),
        "{opening:?}"
    );
    reads.lock().unwrap().clear();

    let column = table.column_index("c7002").unwrap();
    let options = ReadOptions { columns: Some(vec![column]), ..ReadOptions::default() };
    let rows: usize = table.read(&options).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, ROWS);
    let read = std::mem::take(&mut *reads.lock().unwrap());
    let read_bytes: u64 = read.iter().map(|(_, count)| count).sum();
    // The column's section and its blocks, once each.
    let node = &table.inspect(column).unwrap()[0];
    let blocks = node.buffers.iter().flat_map(|buffer| &buffer.blocks);
    let block_bytes: u64 = blocks.map(|block| block.block_bytes).sum();
    assert!(
        read_bytes >= block_bytes && read_bytes < block_bytes + 1024,
        "{read_bytes} bytes, blocks {block_bytes}"
    );
    let sections: Vec<_> = read.iter().filter(|(start, _)| *start > file_bytes / 2).collect();
    assert_eq!(sections.len(), 1, "{read:?}");
}

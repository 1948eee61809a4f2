//! One wrong byte anywhere: who notices, what is said, how the command ends.

use crate::program::{Folder, orders};

/// Offsets of the columns' blocks, as `inspect` tells them: (column, row group, offset, bytes).
fn blocks(folder: &Folder) -> Vec<(String, u64, usize, usize)> {
    let inspected = folder.run("inspect in.cb2t --json --blocks").json();
    let mut found = Vec::new();
    for column in inspected["columns"].as_array().unwrap() {
        for buffer in column["buffers"].as_array().unwrap() {
            let Some(row_group) = buffer["row_group"].as_u64() else { continue };
            for block in buffer["blocks"].as_array().unwrap() {
                let (offset, bytes) = (block["offset"].as_u64().unwrap(), block["bytes"].as_u64().unwrap());
                let name = column["column"].as_str().unwrap().to_owned();
                found.push((name, row_group, offset as usize, bytes as usize));
            }
        }
    }
    found
}

/// A table of three row groups.
fn packed() -> Folder {
    let folder = Folder::new();
    folder.write("in.csv", orders(6000));
    folder.run("pack in.csv -o in.cb2t --row-group-rows 2000 --tile-size 512").done();
    folder
}

fn damage(folder: &Folder, offset: usize) {
    let mut bytes = folder.read("in.cb2t");
    bytes[offset] ^= 0x10;
    folder.write("damaged.cb2t", bytes);
}

#[test]
fn a_wrong_byte_of_a_tile_is_found_by_its_column_row_group_block_and_tile() {
    let folder = packed();
    let (_, row_group, offset, bytes) =
        blocks(&folder).into_iter().find(|(column, group, ..)| column == "price" && *group == 1).unwrap();
    assert_eq!(row_group, 1);
    // The last byte of payload that is not padding lies within the last 16: a byte before them is in the last tile, the fourth of 512 values.
    damage(&folder, offset + bytes - 24);
    let place = ["damaged.cb2t", "column price", "row group 1", "values", "block 0", "tile 3", "checksum"];
    folder.run("verify damaged.cb2t").fails(1, &place);
    folder.run("unpack damaged.cb2t -o out.csv").fails(3, &place);
    folder.run("pack damaged.cb2t -o out.cb2t").fails(3, &place);
    folder.run("diff in.cb2t damaged.cb2t").fails(3, &place);
    folder.run("diff damaged.cb2t in.csv").fails(3, &place);
    // What does not need the tile does not notice.
    folder.run("head damaged.cb2t").done();
    folder.run("stats damaged.cb2t").done();
    folder.run("inspect damaged.cb2t").done();
    folder.run("unpack damaged.cb2t -o out.csv --columns id,city").done();
    folder.run("unpack damaged.cb2t -o few.csv --rows ..2000").done();
    let json = folder.run("verify damaged.cb2t --json");
    assert_eq!(json.code, Some(1));
    let json: serde_json::Value = serde_json::from_str(json.text()).unwrap();
    assert_eq!(json["sound"], false);
    assert!(json["error"].as_str().unwrap().contains("row group 1"), "{json}");
    assert_eq!(
        folder.names(),
        ["damaged.cb2t", "few.csv", "in.cb2t", "in.csv", "out.csv"],
        "what failed leaves no file"
    );
}

#[test]
fn a_wrong_byte_of_a_block_header_is_found_by_its_block() {
    let folder = packed();
    let (_, _, offset, _) = blocks(&folder).into_iter().find(|(column, ..)| column == "id").unwrap();
    for (within, words) in [(0, "magic"), (18, "_count"), (60, "checksum")] {
        damage(&folder, offset + within);
        let place = ["damaged.cb2t", "column id", "row group 0", "block 0", words];
        folder.run("verify damaged.cb2t").fails(1, &place);
        folder.run("unpack damaged.cb2t -o out.csv").fails(3, &place);
        folder.run("head damaged.cb2t").fails(3, &place);
        folder.run("head damaged.cb2t --columns city").done();
    }
}

#[test]
fn a_wrong_byte_of_a_dictionary_is_called_one() {
    let folder = packed();
    let inspected = folder.run("inspect in.cb2t --json --blocks --columns city").json();
    let buffers = inspected["columns"][0]["buffers"].as_array().unwrap().clone();
    let buffer = buffers.iter().find(|buffer| buffer["row_group"].is_null() && buffer["buffer"] == "bytes");
    let block = &buffer.unwrap()["blocks"][0];
    let end = block["offset"].as_u64().unwrap() + block["bytes"].as_u64().unwrap();
    damage(&folder, end as usize - 17);
    for (line, code) in [("verify damaged.cb2t", 1), ("head damaged.cb2t", 3)] {
        folder.run(line).fails(code, &["column city, dictionary, bytes: block 0: tile 0: checksum"]);
    }
    folder.run("head damaged.cb2t --columns id,note").done();
}

#[test]
fn a_wrong_byte_of_the_metadata_is_found_when_the_file_is_opened_or_the_column_is() {
    let folder = packed();
    let bytes = folder.read("in.cb2t");
    let end = bytes.len();
    let footer = u64::from_le_bytes(bytes[end - 32..end - 24].try_into().unwrap()) as usize;
    for (offset, words) in [
        (20, "file header has reserved"),
        (footer, "footer has checksum"),
        (footer + 100, "footer has checksum"),
        (end - 33, "footer has checksum"),
        (end - 32, "trailer: footer_offset"),
        (end - 16, "footer has checksum"),
        (end - 12, "trailer has format version 16"),
        (end - 1, "trailer has a wrong magic"),
    ] {
        damage(&folder, offset);
        folder.run("verify damaged.cb2t").fails(1, &["damaged.cb2t", words]);
        for line in ["unpack damaged.cb2t -o out.csv", "head damaged.cb2t", "schema damaged.cb2t"] {
            folder.run(line).fails(3, &["damaged.cb2t", words]);
        }
    }
    // The sections of the columns lie before the footer, the last column's last.
    damage(&folder, footer - 100);
    folder.run("verify damaged.cb2t").fails(1, &["column note", "column section has checksum"]);
    folder.run("head damaged.cb2t").fails(3, &["column note", "column section has checksum"]);
    folder.run("head damaged.cb2t --columns id").done();
    folder.run("schema damaged.cb2t").done();
}

#[test]
fn a_file_that_was_cut_or_grew_is_damaged() {
    let folder = packed();
    let bytes = folder.read("in.cb2t");
    for length in [bytes.len() - 1, bytes.len() / 2, 100, 64, 10] {
        folder.write("damaged.cb2t", &bytes[..length]);
        folder.run("verify damaged.cb2t").fails(1, &["damaged.cb2t"]);
        folder.run("unpack damaged.cb2t -o out.csv").fails(3, &["damaged.cb2t"]);
    }
    folder.write("damaged.cb2t", [bytes.as_slice(), b"\n"].concat());
    folder.run("verify damaged.cb2t").fails(1, &["damaged.cb2t", "trailer"]);
}

#[test]
fn another_version_and_another_kind_of_file_are_not_damage() {
    let folder = packed();
    damage(&folder, 8);
    folder.run("verify damaged.cb2t").fails(3, &["version 16", "version 0"]);
    folder.write("empty.cb2t", "");
    folder.run("verify empty.cb2t").fails(3, &["empty.cb2t", "not a cb2t file"]);
}

#[test]
fn every_single_byte_is_proven_by_verify() {
    let folder = Folder::new();
    folder.write("in.csv", orders(40));
    folder.run("pack in.csv -o in.cb2t").done();
    let length = folder.read("in.cb2t").len();
    for offset in (0..length).step_by(29) {
        damage(&folder, offset);
        let ended = folder.run("verify damaged.cb2t");
        assert!(matches!(ended.code, Some(1 | 3)), "byte {offset}: {} {}", ended.text(), ended.stderr);
        assert!(ended.stderr.starts_with("cb2t: damaged.cb2t: "), "byte {offset}: {}", ended.stderr);
    }
}

#[test]
fn all_files_are_verified_whatever_the_first_is_like() {
    let folder = packed();
    damage(&folder, 70);
    let ended = folder.run("verify nope.cb2t damaged.cb2t in.cb2t");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("nope.cb2t") && ended.stderr.contains("damaged.cb2t"), "{}", ended.stderr);
    assert!(ended.text().starts_with("in.cb2t: sound: 6,000 rows"), "{}", ended.text());
    assert_eq!(folder.run("verify in.cb2t nope.cb2t").code, Some(3));
}

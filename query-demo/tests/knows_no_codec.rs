//! Queries know no codec: neither does the crate's text name one, nor does generated tuple code depend on one.
#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/generated.rs"]
mod generated;

use std::fs;
use std::path::Path;

use codec_core::Choice;
use generated::session;
use query_demo::gpu::tuple::tuple_code;
use query_demo::ssb::QUERIES;

fn texts(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_codec_is_named() {
    let mut found = Vec::new();
    for folder in ["src", "cuda"] {
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    }
    assert!(found.len() > 40);
    for (path, text) in &found {
        let words: Vec<&str> =
            text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
        for codec in codecs::REGISTRY.iter() {
            let name = codec.name();
            // One codec's name is an English word: it must not stand where names stand.
            let quoted = [
                format!("\"{name}\""),
                format!("codec::{name}"),
                format!("codec-{name}"),
                format!("codec_{name}"),
            ];
            assert!(name == "plain" || !words.contains(&name), "{path} names {name}");
            assert!(quoted.iter().all(|quoted| !text.contains(quoted)), "{path} names {name}");
        }
    }
}

#[test]
fn tuple_code_is_the_same_whatever_the_codecs() {
    let prefer = |name| Choice::Prefer(codecs::REGISTRY.by_name(name).unwrap());
    let choices =
        [Choice::Auto, Choice::Size, prefer("plain"), prefer("flbp"), prefer("rfor"), prefer("dict")];
    let codes = choices.map(|choice| {
        let session = session(0.005, choice);
        let code = |sql: &str| {
            let plan = session.compile(sql).unwrap().plan;
            let texts = (0..plan.pipelines.len()).map(|index| tuple_code(&plan, index).unwrap().text);
            texts.collect::<Vec<String>>().concat()
        };
        QUERIES.map(|(_, sql)| code(sql))
    });
    assert!(codes[0].iter().all(|code| code.contains("__global__")));
    for other in &codes[1..] {
        assert_eq!(*other, codes[0]);
    }
}

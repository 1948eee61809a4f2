//! Fills a folder with damaged files: `mutated_folder FOLDER COUNT [SEED]`. Every eighth is damaged without regard to checksums.

// Built with the targets it is instrumented as they are, and needs what the instrumentation calls.
use libfuzzer_sys as _;
use std::fs;
use std::path::Path;

use cb2t_fuzz::seeds::files;
use cb2t_fuzz::surgery::mutate::mutate;
use codec_core::conformance::Random;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (Some(folder), Some(count)) = (arguments.get(1), number(2)) else {
        eprintln!("usage: mutated_folder FOLDER COUNT [SEED]");
        std::process::exit(2);
    };
    fs::create_dir_all(folder)?;
    let seeds = files();
    let mut random = Random(number(3).unwrap_or(0));
    for index in 0..count {
        let (name, bytes) = &seeds[(index % seeds.len() as u64) as usize];
        let mut damaged = bytes.clone();
        if random.draw().is_multiple_of(8) {
            raw_damage(&mut damaged, &mut random);
        } else {
            mutate(&mut damaged, &mut random);
        }
        fs::write(Path::new(folder).join(format!("{index:05}-{name}")), damaged)?;
    }
    Ok(())
}

/// A changed byte, a piece missing, or the end missing.
fn raw_damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = (random.draw() % bytes.len() as u64) as usize;
    match random.draw() % 3 {
        0 => bytes[at] = random.draw() as u8,
        1 => drop(bytes.drain(at..(at + 64).min(bytes.len()))),
        _ => bytes.truncate(at),
    }
}

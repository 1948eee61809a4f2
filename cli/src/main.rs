//! `cb2t`: compressed columnar tables on the command line.

mod args;
mod commands;
mod error;
mod input;
mod output;
mod progress;
mod render;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use error::{CliError, Outcome};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Differs) => ExitCode::from(1),
        Ok(Outcome::Unreadable) => ExitCode::from(3),
        // Who reads our output has seen enough: `cb2t head ... | less`, left early.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cb2t: {error}");
            error.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<Outcome, CliError> {
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build_global()
            .map_err(|error| CliError::Usage(format!("--threads {threads}: {error}")))?;
    }
    match arguments.command {
        Command::Pack(pack) => commands::pack::run(&pack),
        Command::Unpack(unpack) => commands::unpack::run(&unpack),
        Command::Inspect(inspect) => commands::inspect::run(&inspect),
        Command::Schema(schema) => commands::schema::run(&schema),
        Command::Head(head) => commands::head::run(&head),
        Command::Stats(stats) => commands::stats::run(&stats),
        Command::Verify(verify) => commands::verify::run(&verify),
        Command::Diff(diff) => commands::diff::run(&diff),
        Command::Gen(generate) => commands::generate::run(&generate),
        #[cfg(feature = "query")]
        Command::Query(query) => commands::query::run(&query),
        Command::Devices(devices) => commands::devices::run(&devices),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::Demo(demo) => commands::demo::run(&demo),
    }
}

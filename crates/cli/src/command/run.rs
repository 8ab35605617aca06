use std::time::Duration;

use clap::{CommandFactory, Parser};

use super::batch_run::batch;
use super::bench::bench;
use super::count::count;
use super::exit::stopped;
use super::serve::serve;
use super::simulate::simulate;
use super::stdout::Stdout;
use super::{Cli, Command, Exit};

/// Runs the command line.
pub fn main() -> Exit {
    Cli::try_parse().map_or_else(|error| wrong(&error), run)
}

/// Runs a command on its own runtime.
pub fn run(cli: Cli) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return stopped(&error),
    };
    let exit = runtime.block_on(async {
        let mut stdout = std::io::stdout();
        let out = &mut Stdout::new(&mut stdout);
        let ended = match cli.command {
            Command::Batch(args) => batch(&args, out).await,
            Command::Explain(args) => args.run(&mut std::io::stdout().lock()),
            Command::Count(args) => count(&args, out).await,
            Command::Show(args) => args.run(out).await,
            Command::Check(args) => args.run(out).await,
            Command::Reset(args) => args.run(out).await,
            Command::Migrate(args) => args.run(out),
            Command::Config(args) => args.run(out),
            Command::Completions(args) => args.run(Cli::command(), out),
            Command::Serve(args) => serve(&args, out).await,
            Command::Simulate(args) => simulate(&args).await,
            Command::Bench(args) => bench(&args, out).await,
        };
        ended.unwrap_or_else(|message| stopped(&message))
    });
    // A thread that waits for a file must not hold up the end.
    runtime.shutdown_timeout(END);
    exit
}

/// The longest time that the end waits for threads that read or write files.
const END: Duration = Duration::from_secs(1);

/// Prints an error of the arguments, or the help.
fn wrong(error: &clap::Error) -> Exit {
    match error.render().to_string().strip_prefix("error: ") {
        Some(text) => stopped(&text.trim_end()),
        None => error.exit(),
    }
}

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use clap::Parser;

use super::batch_run::batch;
use super::serve::serve;
use super::signal::StopRequests;
use super::stdout::Stdout;
use super::{ChargeRuleName, Cli, Command, Exit, LimitArgs, SimulateArgs};
use crate::terminal::notify;
use tollgate_simulate::{Settings, SimulatedServer};

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
    runtime.block_on(async {
        let mut stdout = std::io::stdout();
        let out = &mut Stdout::new(&mut stdout);
        let ended = match cli.command {
            Command::Batch(args) => batch(&args, out).await,
            Command::Explain(args) => args.run(&mut std::io::stdout().lock()),
            Command::Count(args) => args.run(out).await,
            Command::Show(args) => args.run(out).await,
            Command::Check(args) => args.run(out),
            Command::Reset(args) => args.run(out),
            Command::Migrate(args) => args.run(out),
            Command::Config(args) => args.run(out),
            Command::Completions(args) => args.run(out),
            Command::Serve(args) => serve(&args, out).await,
            Command::Simulate(args) => simulate(&args).await,
            Command::Bench(args) => args.run(out).await,
        };
        ended.unwrap_or_else(|message| stopped(&message))
    })
}

/// Prints an error of the arguments, or the help.
fn wrong(error: &clap::Error) -> Exit {
    match error.render().to_string().strip_prefix("error: ") {
        Some(text) => stopped(&text.trim_end()),
        None => error.exit(),
    }
}

async fn simulate(args: &SimulateArgs) -> Result<Exit, String> {
    let charge = match args.charge {
        ChargeRuleName::Openai => tollgate_simulate::ChargeRule::OpenAi,
        ChargeRuleName::Usage => tollgate_simulate::ChargeRule::Usage,
    };
    let mut settings = settings(&args.limits)
        .with_itpm(args.itpm)
        .with_otpm(args.otpm)
        .with_charge(charge)
        .with_latency(args.latency_ms.min(), args.latency_ms.max())
        .with_seed(args.seed);
    if let Some(seconds) = args.burst {
        settings = settings.with_burst(Duration::from_secs(seconds));
    }
    let server = SimulatedServer::bind(settings, args.listen).await;
    let server = server.map_err(|error| {
        format!("{}: cannot listen: {error}; choose another address with --listen", args.listen)
    })?;
    // Listens for signals before the address is printed, since the reader may send one.
    let mut requests = StopRequests::listen().map_err(text)?;
    print(&format_args!("listening on http://{}", server.addr()));
    requests.next().await;
    let stats = tokio::select! {
        stats = server.shutdown() => stats.map_err(text)?,
        () = requests.next() => return Ok(Exit::Interrupted),
    };
    print(&serde_json::to_string_pretty(&stats).map_err(text)?);
    Ok(Exit::Success)
}

pub(super) fn settings(limits: &LimitArgs) -> Settings {
    let amount = |limit: Option<u64>| limit.unwrap_or(0);
    Settings::default()
        .with_rpm(amount(limits.rpm))
        .with_tpm(amount(limits.tpm))
        .with_rpd(amount(limits.rpd))
        .with_algorithm(limits.algorithm.map_or_else(Default::default, Into::into))
}

/// Prints to stdout, ignoring errors.
fn print(text: &dyn Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub(super) fn stopped(message: &dyn Display) -> Exit {
    notify(message);
    Exit::Stopped
}

pub(super) fn text(error: impl Display) -> String {
    error.to_string()
}

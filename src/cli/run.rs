use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use super::output::Output;
use super::signal::asked_to_stop;
use super::{BatchArgs, ChargeRule, Cli, Command, Exit, LimitArgs, SimulateArgs};
use crate::batch::target::Base;
use crate::batch::{ApiKey, Ended, Halt, Job, Plan, Stop};
use crate::provider::{OPENAI, Profile};
use crate::quota::Quota;
use crate::simulate::{self, Server, Settings};

/// Does what the arguments say, on a runtime of its own.
pub fn run(cli: Cli) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return stopped(&error),
    };
    runtime.block_on(async {
        let mut stdout = std::io::stdout();
        let out = &mut Output::new(&mut stdout);
        let ended = match cli.command {
            Command::Batch(args) => batch(&args).await,
            Command::Explain(args) => args.run(&mut std::io::stdout().lock()),
            Command::Count(args) => args.run(out).await,
            Command::Show(args) => args.run(out).await,
            Command::Check(args) => args.run(out),
            Command::Reset(args) => args.run(out),
            Command::Migrate(args) => args.run(out),
            Command::Config(args) => args.run(out),
            Command::Completions(args) => args.run(out),
            Command::Simulate(args) => simulate(&args).await,
        };
        ended.unwrap_or_else(|message| stopped(&message))
    })
}

async fn batch(args: &BatchArgs) -> Result<Exit, String> {
    args.check_files().map_err(text)?;
    if args.dry_run {
        let plan = Plan::of(&job(args, placeholder()?)?).map_err(text)?;
        print(&plan);
        return Ok(Exit::Success);
    }
    let server = match args.simulate {
        true => Some(simulated(args).await?),
        false => None,
    };
    let base = match &server {
        Some(server) => format!("http://{}", server.addr()).parse().map_err(text)?,
        None => placeholder()?,
    };
    let job = job(args, base)?;
    check_report(args)?;
    warn_without_limits(args, &job);
    let stop = Stop::new();
    tokio::spawn(interrupt(stop.clone()));
    let ended = job.run(&stop).await.map_err(text)?;
    if let Some(server) = server {
        server.shutdown().await.map_err(text)?;
    }
    Ok(tell(args, &ended))
}

/// The run that the arguments ask for; `base` is for when they name none.
fn job(args: &BatchArgs, base: Base) -> Result<Job, String> {
    let named = args.base_url.as_ref().map(|base| Profile::find(&base.to_string()));
    let profile = args.provider.or(named).unwrap_or(OPENAI);
    let limits = if args.simulate { args.simulated_limits() } else { args.limits.clone() };
    Ok(Job {
        input: args.input.clone(),
        output: args.output.clone(),
        errors: args.errors.clone(),
        base: args.base_url.clone().unwrap_or(base),
        key: key(args)?,
        profile,
        quota: quota(&limits, args.max_in_flight),
        max_in_flight: args.max_in_flight,
        retries: args.retries,
        ordered: args.ordered,
        endpoint: args.endpoint.clone(),
        progress: !args.quiet,
    })
}

/// The key, which a server of one's own may not need.
fn key(args: &BatchArgs) -> Result<Option<ApiKey>, String> {
    if args.simulate || args.dry_run {
        return Ok(None);
    }
    let name = &args.api_key_env;
    match std::env::var(name) {
        Ok(key) if !key.trim().is_empty() => ApiKey::new(&key).map(Some).map_err(text),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("{name} is not a key")),
        _ if args.base_url.is_some() => Ok(None),
        _ => Err(format!(
            "{name} is not set; put the API key into it, name another variable with \
             --api-key-env, or try --simulate, which needs none"
        )),
    }
}

/// The limits that are given. Where all of them are 0, that is said in a way that no default and no
/// header changes: by the requests in flight, which are bounded anyway.
fn quota(limits: &LimitArgs, max_in_flight: usize) -> Quota {
    let amount = |limit: Option<u64>| limit.unwrap_or(0);
    let quota = Quota::new().rpm(amount(limits.rpm)).tpm(amount(limits.tpm));
    let quota = quota.rpd(amount(limits.rpd));
    if quota.is_unlimited() && !limits.is_empty() {
        return quota.concurrency(u64::try_from(max_in_flight).unwrap_or(u64::MAX));
    }
    match limits.algorithm {
        Some(algorithm) => quota.with_algorithm(algorithm.into()),
        None => quota,
    }
}

fn warn_without_limits(args: &BatchArgs, job: &Job) {
    if args.quiet || !job.quota.is_unlimited() {
        return;
    }
    let known = match job.profile.quotas().first() {
        Some(quota) => format!(
            "its models keep to those of {}'s lowest paid tier ({}), and any other",
            job.profile.name(),
            quota.as_of,
        ),
        None => "and none are known for this provider; each model".to_owned(),
    };
    eprintln!(
        "tollgate: no limits are given, {known} starts with one request at a time, and keeps to \
         the limits that its responses tell. --rpm and --tpm set them."
    );
}

/// A report that can't be written is better known before the run than after it.
fn check_report(args: &BatchArgs) -> Result<(), String> {
    let Some(path) = &args.report else { return Ok(()) };
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The built-in provider, with the limits that the run keeps and the charge that it counts.
async fn simulated(args: &BatchArgs) -> Result<Server, String> {
    let charge = match args.provider {
        Some(profile) if profile != OPENAI => simulate::Charge::Usage,
        _ => simulate::Charge::OpenAi,
    };
    let settings = settings(&args.simulated_limits())
        .with_charge(charge)
        .with_latency(Duration::from_millis(50), Duration::from_millis(800))
        .with_seed(args.simulate_seed);
    Server::bind(settings, SocketAddr::from(([127, 0, 0, 1], 0))).await.map_err(text)
}

async fn simulate(args: &SimulateArgs) -> Result<Exit, String> {
    let charge = match args.charge {
        ChargeRule::Openai => simulate::Charge::OpenAi,
        ChargeRule::Usage => simulate::Charge::Usage,
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
    let server = Server::bind(settings, args.listen).await;
    let server = server.map_err(|error| format!("{}: {error}", args.listen))?;
    let mut interrupted = std::pin::pin!(asked_to_stop());
    tokio::select! {
        // Asked first: whoever reads where it listens may interrupt it.
        biased;
        _ = &mut interrupted => {}
        () = async { print(&format_args!("listening on http://{}", server.addr())) } => {
            interrupted.await.map_err(text)?;
        }
    }
    let stats = tokio::select! {
        stats = server.shutdown() => stats.map_err(text)?,
        _ = asked_to_stop() => return Ok(Exit::Interrupted),
    };
    print(&serde_json::to_string_pretty(&stats).map_err(text)?);
    Ok(Exit::Success)
}

fn settings(limits: &LimitArgs) -> Settings {
    let amount = |limit: Option<u64>| limit.unwrap_or(0);
    Settings::default()
        .with_rpm(amount(limits.rpm))
        .with_tpm(amount(limits.tpm))
        .with_rpd(amount(limits.rpd))
        .with_algorithm(limits.algorithm.map_or_else(Default::default, Into::into))
}

/// The first Ctrl-C ends the run in good order, the second at once: either can be resumed.
async fn interrupt(stop: Stop) {
    if asked_to_stop().await.is_err() {
        return;
    }
    eprintln!("tollgate: waiting for what is in flight; press Ctrl-C again to leave at once");
    stop.halt(Halt::Interrupted);
    if asked_to_stop().await.is_ok() {
        std::process::exit(Exit::Interrupted.code().into());
    }
}

/// Prints the report, and says how the run ended.
fn tell(args: &BatchArgs, ended: &Ended) -> Exit {
    print(&ended.report);
    let exit = match &ended.halt {
        Some(Halt::Failed(message)) => stopped(message),
        Some(Halt::Interrupted) => {
            eprintln!("tollgate: interrupted; run the same command again to go on");
            Exit::Interrupted
        }
        None if ended.report.failed + ended.failed_before > 0 => Exit::SomeFailed,
        None => Exit::Success,
    };
    let Some(path) = &args.report else { return exit };
    match std::fs::write(path, ended.report.to_json()) {
        Ok(()) => exit,
        Err(error) => stopped(&format_args!("cannot write {}: {error}", path.display())),
    }
}

/// Prints to stdout. Whoever has closed it does not want to know.
fn print(text: &dyn Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn stopped(message: &dyn Display) -> Exit {
    eprintln!("tollgate: {message}");
    Exit::Stopped
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Where requests go if nobody says.
fn placeholder() -> Result<Base, String> {
    "https://api.openai.com".parse().map_err(text)
}

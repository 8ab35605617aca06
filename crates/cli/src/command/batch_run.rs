use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::exit::{stopped, text};
use super::run_services::RunServices;
use super::signal::StopRequests;
use super::simulate::limit_settings;
use super::stdout::Stdout;
use super::{BatchArgs, Exit, LimitArgs, account_limits};
use crate::batch::target::Base;
use crate::batch::{Halt, Job, RunResult, Stop};
use crate::terminal::notify;
use paceline::limiter::Priority;
use paceline::provider::{Api, OPENAI, Profile};
use paceline::quota::Quota;
use paceline_config::{ClusterConfig, Config, Loaded};
use paceline_simulate::SimulatedServer;

/// Runs `paceline batch`.
///
/// # Errors
/// Returns the reason why the run could not start.
pub(super) async fn batch(args: &BatchArgs, out: &mut Stdout<'_>) -> Result<Exit, String> {
    args.check_files().map_err(text)?;
    let loaded = args.state.config.load()?;
    if args.dry_run {
        let plan = job(args, &loaded, None)?.plan().map_err(text)?;
        out.line(&plan)?;
        return Ok(Exit::Success);
    }
    let server = match args.simulate {
        true => Some(simulated(args, &loaded).await?),
        false => None,
    };
    let base = server.as_ref().map(|server| format!("http://{}", server.addr()));
    let base = base.map(|base| base.parse().map_err(text)).transpose()?;
    let job = job(args, &loaded, base)?;
    check_report(args)?;
    warn_without_limits(args, &job);
    let stop = Stop::new();
    tokio::spawn(interrupt(stop.clone()));
    let cluster = job.config.as_ref().and_then(|config| config.cluster.as_ref());
    let shared = cluster.map(ClusterConfig::connect).transpose().map_err(text)?;
    let builder = job.builder();
    let limiter = match &shared {
        Some(shared) => builder.backend(Arc::clone(shared) as _).build(),
        None => builder.build(),
    };
    let limiter = limiter.map_err(text)?;
    if let Some(config) = job.config.as_ref().filter(|_| !args.simulate) {
        account_limits::follow(config, &limiter)?;
    }
    let services = RunServices::start(args, &loaded, &job, &limiter, shared)?;
    let ended = job.run_with(limiter.clone(), &stop).await.map_err(text)?;
    limiter.close().await;
    services.end();
    if let Some(server) = server {
        server.shutdown().await.map_err(text)?;
    }
    print_report(args, &ended, out)
}

/// Returns the job of the arguments; `simulated` is the address of the simulated provider.
fn job(args: &BatchArgs, loaded: &Loaded, simulated: Option<Base>) -> Result<Job, String> {
    let providers = &loaded.config.providers;
    let detected =
        args.base_url.as_ref().map(|base| Profile::find_among(providers, &base.to_string()));
    let profile = args.provider.or(detected).or(providers.first().copied()).unwrap_or(OPENAI);
    let base = base(args, profile, simulated)?;
    let api = if base.is_compatible_with_openai() { OPENAI.api() } else { profile.api() };
    let endpoint = args.endpoint.clone().unwrap_or_else(|| api.endpoint.to_owned());
    let limits = if args.simulate { simulated_limits(args, loaded) } else { args.limits.clone() };
    Ok(Job {
        input: args.input.clone(),
        output: args.output.clone(),
        errors: args.errors.clone(),
        headers: with_priority(headers(args, profile, &base)?, args.priority),
        priority: args.priority,
        base,
        profile,
        quota: quota(&limits, args.max_in_flight),
        config: Some(args.configured(&loaded.config, profile)),
        max_in_flight: args.max_in_flight,
        retries: args.retries.unwrap_or_else(|| retries(&loaded.config)),
        timeout: args.timeout,
        max_wait: args.max_wait,
        give_up_after: args.give_up_after,
        ordered: args.ordered,
        resume: args.resume(),
        endpoint,
        progress: !args.quiet,
    })
}

/// Returns the number of retries of a configuration. One attempt is its default value and counts as
/// unset.
fn retries(config: &Config) -> u32 {
    match config.retry.attempts.get() {
        1 => RETRIES,
        attempts => attempts - 1,
    }
}

/// Returns the base URL of the arguments, else the configuration's, else the provider's.
fn base(args: &BatchArgs, profile: Profile, simulated: Option<Base>) -> Result<Base, String> {
    let api = profile.api();
    let built_in = (profile == profile.built_in()).then_some(api.origin).flatten();
    let own = profile.base_url().or(built_in).map(|base| base.parse().map_err(text));
    let base = match args.base_url.clone().or(simulated) {
        Some(base) => base,
        None => match own {
            Some(own) => own?,
            // A dry run sends nothing.
            None if args.dry_run => return "http://localhost".parse().map_err(text),
            None => return Err(missing_base_url(profile)),
        },
    };
    let is_bare = is_at(profile, &base) && profile.base_url().is_none();
    Ok(if is_bare { base.with_openai_at(api.openai_path) } else { base })
}

/// Returns the headers; empty if nothing is sent to a provider.
fn headers(args: &BatchArgs, profile: Profile, base: &Base) -> Result<HeaderMap, String> {
    if args.simulate || args.dry_run {
        return Ok(HeaderMap::new());
    }
    let is_named = args.provider.is_some() || args.base_url.is_none();
    let headers = args.credentials.headers(profile, base, is_named)?;
    let has_credential = headers.keys().any(Api::is_credential);
    if !has_credential && !is_named && !is_at(profile, base) && !base.is_loopback() && !args.quiet {
        notify(&format_args!(
            "{base}: sending no API key; select one with --provider or --api-key-env"
        ));
    }
    Ok(headers)
}

/// Adds the header with which a paceline proxy orders its queue.
fn with_priority(mut headers: HeaderMap, priority: Option<Priority>) -> HeaderMap {
    if let Some(priority) = priority {
        let value = priority.to_string().parse().expect("a priority is a valid header value");
        headers.entry(PRIORITY).or_insert(value);
    }
    headers
}

fn is_at(profile: Profile, base: &Base) -> bool {
    profile.is_at(&base.to_string())
}

fn missing_base_url(profile: Profile) -> String {
    let (name, advice) = (profile.name(), profile.api().advice);
    let separator = if advice.is_empty() { "" } else { ": " };
    format!("{name}: no default base URL; set --base-url{separator}{advice}")
}

/// Returns the quota of the limits. If all are 0, the quota limits only the requests in flight, so
/// that neither defaults nor headers apply.
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
    let configured = job.config.as_ref().is_some_and(|config| !config.quotas.is_empty());
    if args.quiet || configured || !job.quota.is_unlimited() {
        return;
    }
    let known = match job.profile.quotas().first() {
        Some(quota) => format!(
            "using {}'s lowest paid tier ({}) for known models; any other model",
            job.profile.name(),
            quota.as_of,
        ),
        None => "and the provider has no default limits; each model".to_owned(),
    };
    notify(&format_args!(
        "no limits given, {known} starts with one request at a time and follows the limits \
         stated in its responses; set limits with --rpm and --tpm"
    ));
}

/// Checks before the run that the report can be written.
fn check_report(args: &BatchArgs) -> Result<(), String> {
    let Some(path) = &args.report else { return Ok(()) };
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

/// Returns the limits of the simulated provider: none if the configuration has quotas.
fn simulated_limits(args: &BatchArgs, loaded: &Loaded) -> LimitArgs {
    if !loaded.config.quotas.is_empty() && args.limits.is_empty() {
        args.limits.clone()
    } else {
        args.simulated_limits()
    }
}

/// Starts the simulated provider with the limits and the charge rule of the run.
async fn simulated(args: &BatchArgs, loaded: &Loaded) -> Result<SimulatedServer, String> {
    let charge = match args.provider {
        Some(profile) if profile != OPENAI => paceline_simulate::ChargeRule::Usage,
        _ => paceline_simulate::ChargeRule::OpenAi,
    };
    let settings = limit_settings(&simulated_limits(args, loaded))
        .with_charge(charge)
        .with_latency(Duration::from_millis(50), Duration::from_millis(800))
        .with_seed(args.simulate_seed);
    SimulatedServer::bind(settings, SocketAddr::from(([127, 0, 0, 1], 0))).await.map_err(text)
}

/// Stops the run at the first Ctrl-C, and exits at the second. The run can be resumed in both cases.
async fn interrupt(stop: Stop) {
    let Ok(mut requests) = StopRequests::listen() else { return };
    requests.next().await;
    notify(&"waiting for requests in flight; press Ctrl-C again to exit immediately");
    stop.halt(Halt::Interrupted);
    requests.next().await;
    std::process::exit(Exit::Interrupted.code().into());
}

/// Prints the report and the reason of an early end.
fn print_report(args: &BatchArgs, ended: &RunResult, out: &mut Stdout<'_>) -> Result<Exit, String> {
    let printed = out.line(&ended.report);
    let exit = match &ended.halt {
        Some(Halt::Failed(message)) => stopped(message),
        Some(Halt::Interrupted) => {
            notify(&"interrupted; run the same command again to continue");
            Exit::Interrupted
        }
        None if ended.report.failed + ended.report.failed_earlier > 0 => Exit::SomeFailed,
        None => {
            if ended.report.requests == 0 && ended.report.skipped > 0 && !args.quiet {
                notify(&format_args!(
                    "{}: already contains the results of all requests; to send them again, choose \
                     another --output",
                    args.output.display()
                ));
            }
            Exit::Success
        }
    };
    if let Some(path) = &args.report {
        let written = std::fs::write(path, ended.report.to_json());
        written.map_err(|error| unwritable(path, &error))?;
    }
    printed.map(|()| exit)
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot write: {error}", path.display())
}

/// The number of retries unless the arguments or the configuration set it.
const RETRIES: u32 = 5;

/// The header with the priority of a request, for a paceline proxy.
const PRIORITY: HeaderName = HeaderName::from_static("x-paceline-priority");

use std::fmt::Display;
use std::fs::File;
use std::io::{LineWriter, Write};

use paceline_simulate::{ChargeRule, Fault, FaultKind, Settings, SimulatedServer};

use super::spend::spend_limit;
use super::{ChargeRuleName, HeadersForm, RefusalForm, SimulateArgs, Storm};
use crate::command::signal::StopRequests;
use crate::command::{Exit, LimitArgs};

/// Runs the provider until it is stopped, and prints its counters.
pub(crate) async fn simulate(args: &SimulateArgs) -> Result<Exit, String> {
    args.check_limits().map_err(text)?;
    let settings = args.settings()?;
    let server = match &args.log {
        None => SimulatedServer::bind(settings, args.listen).await,
        Some(path) => {
            let log = File::create(path)
                .map_err(|error| format!("{}: cannot write: {error}", path.display()))?;
            SimulatedServer::bind_with_log(settings, args.listen, LineWriter::new(log)).await
        }
    };
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

/// Returns the settings of a provider with these limits.
pub(crate) fn limit_settings(limits: &LimitArgs) -> Settings {
    let amount = |limit: Option<u64>| limit.unwrap_or(0);
    Settings::default()
        .with_rpm(amount(limits.rpm))
        .with_tpm(amount(limits.tpm))
        .with_rpd(amount(limits.rpd))
        .with_algorithm(limits.algorithm.map_or_else(Default::default, Into::into))
}

impl SimulateArgs {
    /// Returns the settings of the provider.
    fn settings(&self) -> Result<Settings, String> {
        let charge = match self.charge {
            ChargeRuleName::Openai => ChargeRule::OpenAi,
            ChargeRuleName::Usage | ChargeRuleName::Usd => ChargeRule::Usage,
        };
        let spend = self.usd.map(|limit| spend_limit(limit, self.prices.as_deref())).transpose()?;
        let mut settings = limit_settings(&self.limits)
            .with_itpm(self.itpm)
            .with_otpm(self.otpm)
            .with_concurrency(self.concurrency)
            .with_retry_after(self.retry_after)
            .with_charge(charge)
            .with_latency(self.latency_ms.min(), self.latency_ms.max())
            .with_error_latency(self.error_latency_ms.min(), self.error_latency_ms.max())
            .with_seed(self.seed);
        settings.burst = self.burst;
        settings.window = self.window;
        settings.spend = spend;
        settings.others = self.others;
        settings.changes.clone_from(&self.change);
        settings.limit_headers = self.headers == HeadersForm::Auto;
        settings.named_refusals = self.refusals == RefusalForm::Named;
        let storm =
            |storm: &Storm| Fault::between(storm.from(), storm.until(), FaultKind::Overloaded);
        let faults = self.storm.iter().map(storm).chain(self.refuse.iter().copied());
        Ok(faults.fold(settings, Settings::with_fault))
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Prints to stdout, ignoring errors.
fn print(text: &dyn Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

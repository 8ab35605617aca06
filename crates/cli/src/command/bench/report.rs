use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::BenchArgs;
use super::load::LoadResult;
use crate::terminal::{printable, whole};

/// The report of a benchmark. Field names are stable.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    url: String,
    http: &'static str,
    connections: u16,
    keys: u64,
    seconds: f64,
    /// The number of responses.
    requests: u64,
    requests_per_second: f64,
    latency_ms: LatencySummary,
    statuses: BTreeMap<u16, u64>,
    pub(super) errors: u64,
    first_error: Option<String>,
    /// The number of requests in flight at the end.
    unanswered: u64,
}

#[derive(Debug, Serialize)]
struct LatencySummary {
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl BenchReport {
    pub(super) fn new(args: &BenchArgs, measured: &LoadResult) -> Self {
        let stats = &measured.stats;
        let requests = stats.latencies.len();
        let seconds = measured.elapsed.as_secs_f64();
        let millis = |quantile| stats.latencies.quantile(quantile).as_secs_f64() * 1e3;
        Self {
            url: format!("{}{}", args.url, args.path),
            http: if args.http2 { "2" } else { "1.1" },
            connections: args.connections,
            keys: args.keys,
            seconds,
            requests,
            requests_per_second: if seconds > 0.0 { requests as f64 / seconds } else { 0.0 },
            latency_ms: LatencySummary {
                p50: millis(0.5),
                p90: millis(0.9),
                p99: millis(0.99),
                max: millis(1.0),
            },
            statuses: stats.statuses.clone(),
            errors: stats.errors,
            first_error: stats.first_error.clone(),
            unanswered: stats.sent.saturating_sub(requests + stats.errors),
        }
    }
}

impl fmt::Display for BenchReport {
    /// Writes the report without a trailing newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, http, connections, keys, seconds, .. } = self;
        let (url, connections, keys) =
            (printable(url), whole(u64::from(*connections)), whole(*keys));
        writeln!(f, "{url}, HTTP/{http}, {connections} connections, {keys} keys, {seconds:.1} s")?;
        let (answered, rate) = (whole(self.requests), whole(self.requests_per_second as u64));
        writeln!(f, "responses   {answered}, {rate} per second")?;
        let LatencySummary { p50, p90, p99, max } = self.latency_ms;
        writeln!(f, "latency     p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, max {max:.3} ms")?;
        f.write_str("statuses   ")?;
        for (status, count) in &self.statuses {
            write!(f, " {status}: {}", whole(*count))?;
        }
        write!(f, "\nunanswered  {}, in flight at the end", whole(self.unanswered))?;
        write!(f, "\nerrors      {}", whole(self.errors))?;
        match &self.first_error {
            Some(error) => write!(f, ", first: {}", printable(error)),
            None => Ok(()),
        }
    }
}

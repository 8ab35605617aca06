//! `paceline bench`: measures a running server.
//!
//! A closed loop: each connection sends its next request after the response to the previous one, like
//! a client that waits for responses. There is no fixed request rate.

mod connection;
mod load;
mod load_stats;
mod report;
mod request_template;
mod run;
mod target;

use std::time::Duration;

use clap::{Args, value_parser};
use http::Method;

use super::redacted_parser::RedactedParser;
use paceline_config::parse_duration;

pub(super) use run::bench;
pub use target::{PathTemplate, Url};

/// The arguments of `paceline bench`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BenchArgs {
    /// URL of the server
    #[arg(value_name = "http://HOST:PORT", value_parser = RedactedParser(|text| text.parse::<Url>()))]
    pub url: Url,

    /// Number of concurrent connections, each sending one request at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(1..))]
    pub connections: u16,

    /// Duration, e.g. 500ms, 10s or 1m [default: 10s, unless --requests is given]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Total number of requests [default: unlimited]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// Number of keys, requested in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..))]
    pub keys: u64,

    /// Use HTTP/2 without TLS (h2c) instead of HTTP/1.1
    #[arg(long)]
    pub http2: bool,

    /// Wait for admission (`canWait=true`) instead of getting a 429
    #[arg(long)]
    pub wait: bool,

    /// Path to request; {key} is replaced by bench-0, bench-1, ...
    #[arg(long, value_name = "PATH", default_value = "/rate/{key}")]
    pub path: PathTemplate,

    /// HTTP method
    #[arg(long, value_name = "METHOD", default_value = "POST")]
    pub method: Method,

    /// Allow a server on another machine; benchmark only servers that you operate
    #[arg(long)]
    pub allow_remote: bool,

    /// Print one JSON document on one line
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// Returns the time limit.
    fn limit(&self) -> Option<Duration> {
        let unless_counted = self.requests.is_none().then_some(Duration::from_secs(10));
        self.duration.or(unless_counted)
    }
}

pub(super) const ABOUT: &str = "\
Measure the throughput and latency of a running server.

Each connection sends a request, reads the whole response, and sends the next request (a closed \
loop). Benchmarking another machine requires --allow-remote. PACELINE_TOKEN, if set, is sent with \
every request.

Latency is the time from sending a request to the end of its response, over all connections; \
percentiles are rounded up by at most 1 %. If the server runs on this machine, the benchmark competes with it \
for CPU time.";

const EXAMPLES: &str = "\
Examples:
  64 connections, one key, ten seconds:
    paceline serve --port 8080 &
    paceline bench http://127.0.0.1:8080

  A hundred thousand requests over ten thousand keys, HTTP/2:
    paceline bench http://127.0.0.1:8080 --requests 100000 --keys 10000 --http2

  Clients that wait until they are admitted:
    paceline bench http://127.0.0.1:8080 --connections 100 --wait

  Another path, and a single value of the result:
    paceline bench http://127.0.0.1:8080 --path /healthz --method GET --json | jq .latency_ms.p99

JSON:
  one document on one line: {\"url\", \"http\", \"connections\", \"keys\", \"seconds\", \"requests\",
  \"requests_per_second\", \"latency_ms\": {\"p50\", \"p90\", \"p99\", \"max\"}, \"statuses\": {\"200\": ..},
  \"errors\", \"first_error\", \"unanswered\"}

Exit codes:
  0    every request got a response, whatever its status (requests cut off at the end don't count)
  1    some connections broke, or some responses were invalid
  2    wrong arguments, or the server is unreachable
  130  interrupted by Ctrl-C; the results so far are printed";

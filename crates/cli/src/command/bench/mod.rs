//! `tollgate bench`: how fast a running server answers.
//!
//! It is a closed loop: each connection sends its next request when it has the answer to the last, so
//! what is measured is what that many clients see. It doesn't send at a given rate.

mod connection;
mod load;
mod question;
mod report;
mod tally;
mod target;

use std::time::Duration;

use clap::{Args, value_parser};
use http::Method;

use super::Exit;
use super::output::Output;
use super::unechoed::Unechoed;
use load::Load;
use report::Report;
pub use target::{Template, Url};
use tollgate::config::section::length_of_time;

/// The arguments of `tollgate bench`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BenchArgs {
    /// Where the server listens
    #[arg(value_name = "http://HOST:PORT", value_parser = Unechoed(|text| text.parse::<Url>()))]
    pub url: Url,

    /// How many connections ask at a time, each one request after the other
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(1..))]
    pub connections: u16,

    /// For how long, as 500ms, 10s or 1m [default: 10s, unless --requests is given]
    #[arg(long, value_name = "TIME", value_parser = length_of_time)]
    pub duration: Option<Duration>,

    /// How many requests, of all connections [default: as many as fit into the time]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// How many keys, asked for in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u64).range(1..))]
    pub keys: u64,

    /// HTTP/2 without TLS (h2c), in place of HTTP/1.1
    #[arg(long)]
    pub http2: bool,

    /// Ask to wait where a key has nothing left (`canWait=true`), in place of a 429
    #[arg(long)]
    pub wait: bool,

    /// What is asked for; {key} stands for bench-0, bench-1, ..
    #[arg(long, value_name = "PATH", default_value = "/rate/{key}")]
    pub path: Template,

    /// How it is asked for
    #[arg(long, value_name = "METHOD", default_value = "POST")]
    pub method: Method,

    /// Ask a server of another machine: one of your own
    #[arg(long)]
    pub allow_remote: bool,

    /// Print one JSON document in one line
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// # Errors
    /// Says why the server can't be asked, or that nothing can be written.
    pub(super) async fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        let address = self.url.resolve(self.allow_remote).await?;
        let measured = Load::new(self, address)?.run().await?;
        let report = Report::new(self, &measured);
        match self.json {
            true => out.json(&report)?,
            false => out.line(&report)?,
        }
        Ok(match measured {
            _ if measured.interrupted => Exit::Interrupted,
            _ if report.errors > 0 => Exit::SomeFailed,
            _ => Exit::Success,
        })
    }

    /// For how long it asks, unless the requests are all sent before.
    fn limit(&self) -> Option<Duration> {
        let unless_counted = self.requests.is_none().then_some(Duration::from_secs(10));
        self.duration.or(unless_counted)
    }
}

pub(super) const ABOUT: &str = "\
Measure how fast a running server answers.

Every connection sends a request, reads the whole answer, and sends the next. What a server of another \
machine is asked for is load on it: that has to be said (--allow-remote). TOLLGATE_TOKEN, where \
it is set, is sent along.

Latency counts from the moment a request is sent until its answer is read, those of all connections \
together; percentiles are rounded up by at most 1/32. The client runs on the same machine as the \
server, if it is here, and takes of its processors.";

const EXAMPLES: &str = "\
Examples:
  64 connections, one key, ten seconds:
    tollgate serve --port 8080 &
    tollgate bench http://127.0.0.1:8080

  A hundred thousand requests over ten thousand keys, HTTP/2:
    tollgate bench http://127.0.0.1:8080 --requests 100000 --keys 10000 --http2

  Clients that wait for their turn:
    tollgate bench http://127.0.0.1:8080 --connections 100 --wait

  Another path, and one figure of the result:
    tollgate bench http://127.0.0.1:8080 --path /healthz --method GET --json | jq .latency_ms.p99

JSON:
  one document in one line: {\"url\", \"http\", \"connections\", \"keys\", \"seconds\", \"requests\",
  \"requests_per_second\", \"latency_ms\": {\"p50\", \"p90\", \"p99\", \"max\"}, \"statuses\": {\"200\": ..},
  \"errors\", \"first_error\", \"unanswered\"}

Exit codes:
  0    every request was answered, whatever the status; those that the end cut off aside
  1    some connections broke, or some answers could not be read
  2    wrong arguments, or a server that can't be asked
  130  interrupted by Ctrl-C; what was measured until then is printed";

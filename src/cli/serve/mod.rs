//! `tollgate serve`: its arguments, over the configuration, and its run.

mod flags;
mod log;
mod run;

use std::path::PathBuf;

use clap::Args;

use super::state_args::ConfigArgs;
use crate::config::{self, LoadOptions, Loaded, Override};
use flags::Flag;

pub(super) use run::serve;

/// The arguments of `tollgate serve`. Those of GoCC mean here what they mean there; each stands over
/// what the configuration says below `serve`.
#[derive(Debug, Clone, Default, Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub struct ServeArgs {
    /// Which limits, providers and upstreams.
    #[command(flatten)]
    pub config: ConfigArgs,

    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,

    /// Another port of that address; 0 takes a free one
    #[arg(short, long, value_name = "PORT", allow_negative_numbers = true)]
    pub port: Option<String>,

    /// Lets anybody ask who reaches an address other than this machine's own, without a token
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub allow_anonymous: Option<String>,

    /// Requests per window of a key for which nothing else is said [default: 100]
    #[arg(
        short,
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Limits of /rate"
    )]
    pub max_requests: Option<String>,

    /// Requests that may wait for such a key [default: 400]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Limits of /rate")]
    pub max_requests_in_queue: Option<String>,

    /// Length of its window in milliseconds, from 10 to 3600000 [default: 1000]
    #[arg(
        short,
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Limits of /rate"
    )]
    pub window_millis: Option<String>,

    /// How such keys are counted: sliding_window, fixed_window, token_bucket [default: sliding_window]
    #[arg(long, value_name = "NAME", help_heading = "Limits of /rate")]
    pub algorithm: Option<String>,

    /// A request may say by how many requests per window it is judged (maxRequests) [default: false]
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Limits of /rate")]
    pub requests_can_set_rate: Option<String>,

    /// A request may say behind how many it waits (maxRequestsInQueue) [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Limits of /rate")]
    pub requests_can_mod_queue: Option<String>,

    /// Limits by key as GoCC has them, JSON or YAML: {keys: [..]}; followed while it runs
    #[arg(short, long, value_name = "FILE", help_heading = "Limits of /rate")]
    pub config_file: Option<PathBuf>,

    /// How lines of the log are written: json, text [default: json]
    #[arg(short, long, value_name = "NAME", help_heading = "Log")]
    pub log_format: Option<String>,

    /// From which level on: debug, info, warn, error [default: info]
    #[arg(long, value_name = "NAME", help_heading = "Log")]
    pub log_level: Option<String>,

    /// Log answers that are a success [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Log")]
    pub log2xx: Option<String>,

    /// Log answers that say the client is wrong or over its limit [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Log")]
    pub log4xx: Option<String>,

    /// Log answers that say the server has failed [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Log")]
    pub log5xx: Option<String>,

    /// GoCC's list of instances; not needed here: give `cluster: {redis: ..}` in the configuration
    #[arg(short, long, value_name = "URLS", hide_short_help = true)]
    pub instance_urls: Option<String>,
}

impl ServeArgs {
    /// The configuration, with what these arguments and their variables say over it.
    ///
    /// # Errors
    /// All that is wrong with it, one thing a line, each with the name of its flag.
    pub(super) fn load(&self) -> Result<Loaded, String> {
        self.load_from(self.config.options(), &|name| std::env::var(name).ok())
    }

    fn load_from(
        &self,
        options: LoadOptions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Loaded, String> {
        let set = |flag: &Flag<'_>| flag.set(variable);
        if let Some((name, _)) = set(&Flag::other("--instance-urls", &self.instance_urls)) {
            return Err(format!("{name}: {NO_INSTANCES}"));
        }
        let mut options = options;
        let path = self.config_file.as_ref().map(|path| path.display().to_string());
        if let Some((_, path)) = set(&Flag::other("--config-file", &path)) {
            options = options.with_keys_file(path);
        }
        for flag in self.flags() {
            if let Some((name, value)) = set(&flag) {
                options = options.with_override(Override::new(&name, &flag.path(), &value));
            }
        }
        let load = |options: &LoadOptions| config::load(options).map_err(|error| error.to_string());
        let loaded = load(&options)?;
        match set(&Flag::other("--port", &self.port)) {
            None => Ok(loaded),
            Some((name, port)) => {
                let at = format!("'{}'", listen(&loaded, &port));
                load(&options.with_override(Override::new(&name, &["serve", "listen"], &at)))
            }
        }
    }

    /// Those that are values of the configuration.
    fn flags(&self) -> [Flag<'_>; 13] {
        [
            Flag::text("--listen", &["listen"], &self.listen),
            Flag::bool("--allow-anonymous", &["allow_anonymous"], &self.allow_anonymous),
            Flag::text("--max-requests", &["max_requests"], &self.max_requests),
            Flag::text(
                "--max-requests-in-queue",
                &["max_requests_in_queue"],
                &self.max_requests_in_queue,
            ),
            Flag::text("--window-millis", &["window_millis"], &self.window_millis),
            Flag::name("--algorithm", &["algorithm"], &self.algorithm),
            Flag::bool(
                "--requests-can-set-rate",
                &["requests_can_set_rate"],
                &self.requests_can_set_rate,
            ),
            Flag::bool(
                "--requests-can-mod-queue",
                &["requests_can_mod_queue"],
                &self.requests_can_mod_queue,
            ),
            Flag::name("--log-format", &["log", "format"], &self.log_format),
            Flag::name("--log-level", &["log", "level"], &self.log_level),
            Flag::bool("--log2xx", &["log", "log2xx"], &self.log2xx),
            Flag::bool("--log4xx", &["log", "log4xx"], &self.log4xx),
            Flag::bool("--log5xx", &["log", "log5xx"], &self.log5xx),
        ]
    }
}

/// The address that is configured, at another port; what is none is told of as an address.
fn listen(loaded: &Loaded, port: &str) -> String {
    let mut address = loaded.config.serve.listen;
    match port.parse() {
        Ok(port) => {
            address.set_port(port);
            address.to_string()
        }
        Err(_) => format!("{}:{port}", address.ip()),
    }
}

const NO_INSTANCES: &str = "any instance can be asked here, none forwards to another: give each \
    `cluster: {redis: URL}` in its configuration instead";

const ABOUT: &str = "\
Answer over HTTP whether a key may go on, proxy LLM providers within their limits, and show it live.

POST /rate/KEY answers as GoCC does; /v1 is the JSON API; /NAME/... goes to the upstream of that name \
in the configuration; / is a page for people. What the configuration says below `serve` can be said \
here too, or in the environment as TOLLGATE_<NAME>: TOLLGATE_MAX_REQUESTS=10 is --max-requests 10.

Tokens come from the environment alone: clients show TOLLGATE_TOKEN, admins TOLLGATE_ADMIN_TOKEN. It \
listens on this machine's own address, unless one of the first is set or --allow-anonymous is given.

The first Ctrl-C or SIGTERM lets answers that are on their way end, the second doesn't.";

const EXAMPLES: &str = "\
Examples:
  tollgate serve --max-requests 10 --window-millis 1000 &
  curl -X POST 'http://127.0.0.1:8080/rate/user-1?canWait=true'

  tollgate serve --config tollgate.yaml --port 0

Exit codes:
  0    stopped by Ctrl-C or a kill, and everybody answered
  2    wrong arguments, a configuration that can't be used, an address that can't be listened on
  130  stopped again, while answers were still on their way";

#[cfg(test)]
mod tests;

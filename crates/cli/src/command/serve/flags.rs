use clap::{Args, ValueHint};

/// The options of `paceline serve` besides `--config`. The configuration checks their values.
///
/// Each has an environment variable, such as `PACELINE_MAX_REQUESTS` for `--max-requests`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Flags {
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,

    /// Port to listen on, overriding the port of --listen; 0 selects a free port
    #[arg(short, long, value_name = "PORT", allow_negative_numbers = true)]
    port: Option<String>,

    /// Allow clients without a token on an address that is not loopback
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allow_anonymous: Option<String>,

    /// Requests per window, for keys without their own limit [default: 100]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, help_heading = RATE)]
    max_requests: Option<String>,

    /// Queue length, for keys without their own limit [default: 400]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = RATE)]
    max_requests_in_queue: Option<String>,

    /// Window in milliseconds, from 10 to 3600000, for keys without their own limit [default: 1000]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, help_heading = RATE)]
    window_millis: Option<String>,

    /// Algorithm for keys without their own limit: sliding_window, fixed_window, token_bucket
    /// [default: sliding_window]
    #[arg(long, value_name = "NAME", help_heading = RATE)]
    algorithm: Option<String>,

    /// Let requests choose their limit per window (maxRequests) [default: false]
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = RATE)]
    requests_can_set_rate: Option<String>,

    /// Let requests choose their queue length (maxRequestsInQueue) [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = RATE)]
    requests_can_mod_queue: Option<String>,

    /// Limits by key in GoCC's format, JSON or YAML: {keys: [..]}; reloaded when the file changes
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, help_heading = RATE)]
    config_file: Option<String>,

    /// Log format: json, text [default: json]
    #[arg(short, long, value_name = "NAME", help_heading = LOG)]
    log_format: Option<String>,

    /// Minimum log level: debug, info, warn, error [default: info]
    #[arg(long, value_name = "NAME", help_heading = LOG)]
    log_level: Option<String>,

    /// Log 2xx and 3xx responses [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = LOG)]
    log2xx: Option<String>,

    /// Log 4xx responses: client errors and exceeded limits [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = LOG)]
    log4xx: Option<String>,

    /// Log 5xx responses: server errors [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = LOG)]
    log5xx: Option<String>,

    /// GoCC's list of instances; not supported: set `cluster: {redis: ..}` in the configuration
    #[arg(short, long, value_name = "URLS", hide_short_help = true)]
    instance_urls: Option<String>,
}

/// A command-line option with a fallback environment variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag<'a> {
    /// The name of the option, without dashes.
    name: &'static str,
    /// The value given on the command line.
    given: Option<&'a str>,
    /// Converts a value to YAML.
    to_yaml: fn(&str) -> String,
}

/// A value and the option or environment variable that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlagValue {
    pub(super) origin: String,
    /// The value as YAML.
    pub(super) value: String,
}

impl Flags {
    pub(super) fn port(&self) -> Flag<'_> {
        Flag::new("port", self.port.as_deref(), str::to_owned)
    }

    pub(super) fn config_file(&self) -> Flag<'_> {
        Flag::new("config-file", self.config_file.as_deref(), str::to_owned)
    }

    pub(super) fn instance_urls(&self) -> Flag<'_> {
        Flag::new("instance-urls", self.instance_urls.as_deref(), str::to_owned)
    }

    /// Returns the options that set one value of the configuration each, with its path below `serve`.
    pub(super) fn settings(&self) -> [(Flag<'_>, &'static [&'static str]); 13] {
        let text = |name, value| Flag::new(name, value, quoted);
        let number = |name, value| Flag::new(name, value, str::to_owned);
        let boolean = |name, value| Flag::new(name, value, boolean);
        let name = |name, value| Flag::new(name, value, lower_case);
        [
            (text("listen", self.listen.as_deref()), &["listen"]),
            (boolean("allow-anonymous", self.allow_anonymous.as_deref()), &["allow_anonymous"]),
            (number("max-requests", self.max_requests.as_deref()), &["max_requests"]),
            (
                number("max-requests-in-queue", self.max_requests_in_queue.as_deref()),
                &["max_requests_in_queue"],
            ),
            (number("window-millis", self.window_millis.as_deref()), &["window_millis"]),
            (name("algorithm", self.algorithm.as_deref()), &["algorithm"]),
            (
                boolean("requests-can-set-rate", self.requests_can_set_rate.as_deref()),
                &["requests_can_set_rate"],
            ),
            (
                boolean("requests-can-mod-queue", self.requests_can_mod_queue.as_deref()),
                &["requests_can_mod_queue"],
            ),
            (Flag::new("log-format", self.log_format.as_deref(), log_format), &["log", "format"]),
            (name("log-level", self.log_level.as_deref()), &["log", "level"]),
            (boolean("log2xx", self.log2xx.as_deref()), &["log", "log2xx"]),
            (boolean("log4xx", self.log4xx.as_deref()), &["log", "log4xx"]),
            (boolean("log5xx", self.log5xx.as_deref()), &["log", "log5xx"]),
        ]
    }
}

impl<'a> Flag<'a> {
    fn new(name: &'static str, given: Option<&'a str>, to_yaml: fn(&str) -> String) -> Self {
        Self { name, given, to_yaml }
    }

    /// Returns the value of the option, else that of its environment variable as read by `variable`.
    pub(super) fn resolve(self, variable: &dyn Fn(&str) -> Option<String>) -> Option<FlagValue> {
        let to_value =
            |origin, text: &str| FlagValue { origin, value: (self.to_yaml)(text.trim()) };
        if let Some(given) = self.given {
            return Some(to_value(format!("--{}", self.name), given));
        }
        let name = format!("PACELINE_{}", self.name.replace('-', "_").to_uppercase());
        // Scripts and Compose files unset a variable by leaving it empty. Kubernetes sets PACELINE_PORT
        // to the address of a service named `paceline`.
        let value = variable(&name)
            .filter(|value| !value.trim().is_empty() && !value.starts_with("tcp://"))?;
        Some(to_value(name, &value))
    }
}

/// Quotes a text that YAML would read as another type: `[::1]:8080` would be a list.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Converts a boolean in one of the spellings of Go's `strconv.ParseBool`.
fn boolean(text: &str) -> String {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => "true".to_owned(),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => "false".to_owned(),
        other => other.to_owned(),
    }
}

fn lower_case(text: &str) -> String {
    text.to_lowercase()
}

/// Converts a log format. GoCC calls the text format `system-default`.
fn log_format(text: &str) -> String {
    match lower_case(text) {
        name if name == "system-default" => "text".to_owned(),
        name => name,
    }
}

const RATE: &str = "Limits of /rate";
const LOG: &str = "Log";

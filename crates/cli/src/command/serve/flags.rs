use std::borrow::Cow;
use std::collections::HashMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueHint};

/// A flag of `tollgate serve`.
#[derive(Debug)]
pub(super) struct Flag {
    /// Without the dashes.
    name: &'static str,
    short: Option<char>,
    /// What stands for its value where it is told of.
    value: &'static str,
    kind: Kind,
    /// The way to its value below `serve`; none if it is no value of the configuration.
    path: &'static [&'static str],
    help: &'static str,
    heading: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A text, whatever it would be in YAML: `[::1]:8080` is a list there.
    Text,
    /// The same; a negative one is no flag.
    Number,
    File,
    /// One that is or isn't, in the spellings of Go's `strconv.ParseBool`.
    Bool,
    /// One of a few names, in whatever case.
    Name,
    /// Told of only to who wants to know everything.
    Unused,
}

/// The flags that were given, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Given(HashMap<&'static str, String>);

impl Given {
    /// What was said, and by which name: the flag, or else its variable.
    pub(super) fn set(
        &self,
        flag: &Flag,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(String, String)> {
        let spelled = |text: &str| flag.spelled(text).into_owned();
        if let Some(given) = self.0.get(flag.name) {
            return Some((format!("--{}", flag.name), spelled(given)));
        }
        let name = flag.variable();
        // An empty one is none: that is how scripts and Compose files say so.
        let value = variable(&name).filter(|value| !value.trim().is_empty())?;
        // Kubernetes gives the pods beside a service `tollgate` its address as TOLLGATE_PORT.
        let value = Some(value).filter(|value| !value.starts_with("tcp://"))?;
        Some((name, spelled(&value)))
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(Flag::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |flag: &Flag| Some((flag.name, matches.get_one::<String>(flag.name)?.clone()));
        Ok(Self(FLAGS.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

impl Flag {
    const fn new(
        name: &'static str,
        (kind, value): (Kind, &'static str),
        path: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, short: None, value, kind, path, help, heading: None }
    }

    const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    const fn heading(self, heading: &'static str) -> Self {
        Self { heading: Some(heading), ..self }
    }

    /// The way to its value in the configuration, if it is one of its values.
    pub(super) fn path(&self) -> Option<Vec<&'static str>> {
        (!self.path.is_empty()).then(|| [&["serve"], self.path].concat())
    }

    fn argument(&self) -> Arg {
        let argument = Arg::new(self.name)
            .long(self.name)
            .short(self.short)
            .value_name(self.value)
            .help(self.help)
            .help_heading(self.heading);
        match self.kind {
            Kind::Text | Kind::Name => argument,
            Kind::Number => argument.allow_negative_numbers(true),
            Kind::File => argument.value_hint(ValueHint::AnyPath),
            Kind::Bool => {
                argument.num_args(0..=1).require_equals(true).default_missing_value("true")
            }
            Kind::Unused => argument.hide_short_help(true),
        }
    }

    fn variable(&self) -> String {
        format!("TOLLGATE_{}", self.name.replace('-', "_").to_uppercase())
    }

    /// The value as the configuration spells it; what can't be read is left to it to refuse.
    fn spelled<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let value = value.trim();
        match self.kind {
            Kind::Text => format!("'{}'", value.replace('\'', "''")).into(),
            Kind::Number | Kind::File | Kind::Unused => value.into(),
            Kind::Bool => match value {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => "true".into(),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => "false".into(),
                _ => value.into(),
            },
            Kind::Name => match value.to_lowercase() {
                name if name == "system-default" => "text".into(),
                name => name.into(),
            },
        }
    }
}

/// All of them, as they are told of.
pub(super) static FLAGS: [Flag; 16] = [
    Flag::new(
        "listen",
        (Kind::Text, "ADDRESS:PORT"),
        &["listen"],
        "The address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]",
    ),
    PORT,
    Flag::new(
        "allow-anonymous",
        BOOL,
        &["allow_anonymous"],
        "Lets anybody ask who reaches an address other than this machine's own, without a token",
    ),
    Flag::new(
        "max-requests",
        NUMBER,
        &["max_requests"],
        "Requests per window of a key for which nothing else is said [default: 100]",
    )
    .short('m')
    .heading(LIMITS),
    Flag::new(
        "max-requests-in-queue",
        NUMBER,
        &["max_requests_in_queue"],
        "Requests that may wait for such a key [default: 400]",
    )
    .heading(LIMITS),
    Flag::new(
        "window-millis",
        NUMBER,
        &["window_millis"],
        "Length of its window in milliseconds, from 10 to 3600000 [default: 1000]",
    )
    .short('w')
    .heading(LIMITS),
    Flag::new(
        "algorithm",
        NAME,
        &["algorithm"],
        "How such keys are counted: sliding_window, fixed_window, token_bucket [default: \
         sliding_window]",
    )
    .heading(LIMITS),
    Flag::new(
        "requests-can-set-rate",
        BOOL,
        &["requests_can_set_rate"],
        "A request may say by how many requests per window it is judged (maxRequests) [default: false]",
    )
    .short('r')
    .heading(LIMITS),
    Flag::new(
        "requests-can-mod-queue",
        BOOL,
        &["requests_can_mod_queue"],
        "A request may say behind how many it waits (maxRequestsInQueue) [default: false]",
    )
    .heading(LIMITS),
    CONFIG_FILE,
    Flag::new(
        "log-format",
        NAME,
        &["log", "format"],
        "How lines of the log are written: json, text [default: json]",
    )
    .short('l')
    .heading(LOG),
    Flag::new(
        "log-level",
        NAME,
        &["log", "level"],
        "From which level on: debug, info, warn, error [default: info]",
    )
    .heading(LOG),
    Flag::new(
        "log2xx",
        BOOL,
        &["log", "log2xx"],
        "Log answers that are a success [default: false]",
    )
    .heading(LOG),
    Flag::new(
        "log4xx",
        BOOL,
        &["log", "log4xx"],
        "Log answers that say the client is wrong or over its limit [default: false]",
    )
    .heading(LOG),
    Flag::new(
        "log5xx",
        BOOL,
        &["log", "log5xx"],
        "Log answers that say the server has failed [default: true]",
    )
    .heading(LOG),
    INSTANCE_URLS,
];

pub(super) const PORT: Flag = Flag::new(
    "port",
    (Kind::Number, "PORT"),
    &[],
    "Another port of that address; 0 takes a free one",
)
.short('p');

pub(super) const CONFIG_FILE: Flag = Flag::new(
    "config-file",
    (Kind::File, "FILE"),
    &[],
    "Limits by key as GoCC has them, JSON or YAML: {keys: [..]}; followed while it runs",
)
.short('c')
.heading(LIMITS);

pub(super) const INSTANCE_URLS: Flag = Flag::new(
    "instance-urls",
    (Kind::Unused, "URLS"),
    &[],
    "GoCC's list of instances; not needed here: give `cluster: {redis: ..}` in the configuration",
)
.short('i');

const NUMBER: (Kind, &str) = (Kind::Number, "N");
const BOOL: (Kind, &str) = (Kind::Bool, "BOOL");
const NAME: (Kind, &str) = (Kind::Name, "NAME");

const LIMITS: &str = "Limits of /rate";
const LOG: &str = "Log";

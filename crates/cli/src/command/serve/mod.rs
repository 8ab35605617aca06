//! `paceline serve`: its arguments, which override the configuration, and its run.

mod flags;
mod log;
mod log_queue;
mod open_files;
mod run;
mod signals;

use clap::Args;

use super::exit::text;
use super::state_args::ConfigArgs;
use flags::{FlagValue, Flags};
use paceline_config::{self as config, LoadOptions, Loaded, Override};
use paceline_serve::Serve;

pub(super) use run::serve;

/// The arguments of `paceline serve`. Arguments of GoCC have their meaning there. Each argument
/// overrides a value below `serve` in the configuration.
#[derive(Debug, Clone, Default, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeArgs {
    /// The configuration file.
    #[command(flatten)]
    pub config: ConfigArgs,

    #[command(flatten)]
    flags: Flags,
}

impl ServeArgs {
    /// Loads the configuration, overridden by these arguments and their environment variables.
    ///
    /// # Errors
    /// Returns all errors of the configuration, one per line, each with its option.
    pub(super) fn load(&self) -> Result<Loaded, String> {
        // A value that isn't Unicode is invalid, not missing.
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        self.load_from(self.config.options(), &variable)
    }

    fn load_from(
        &self,
        options: LoadOptions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Loaded, String> {
        if let Some(FlagValue { origin, .. }) = self.flags.instance_urls().resolve(variable) {
            return Err(format!("{origin}: {NO_INSTANCES}"));
        }
        let mut options = options;
        if let Some(FlagValue { value, .. }) = self.flags.config_file().resolve(variable) {
            options = paceline_serve::with_keys_file(options, value);
        }
        for (flag, path) in self.flags.settings() {
            if let Some(FlagValue { origin, value }) = flag.resolve(variable) {
                let path = [&["serve"], path].concat();
                options = options.with_override(Override::new(&origin, &path, &value));
            }
        }
        let load = |options: &LoadOptions| config::load(options).map_err(text);
        let loaded = load(&options)?;
        match self.flags.port().resolve(variable) {
            None => Ok(loaded),
            Some(FlagValue { origin, value: port }) => {
                let serve = Serve::of(&loaded.config).map_err(text)?;
                let listen = format!("'{}'", with_port(serve, &port));
                let listen = Override::new(&origin, &["serve", "listen"], &listen);
                load(&options.with_override(listen))
            }
        }
    }
}

/// Returns the configured address with another port. An invalid port is left to the configuration,
/// which reports it as an invalid address.
fn with_port(serve: &Serve, port: &str) -> String {
    let mut address = serve.listen;
    match port.parse() {
        Ok(port) => {
            address.set_port(port);
            address.to_string()
        }
        Err(_) => format!("{}:{port}", address.ip()),
    }
}

const NO_INSTANCES: &str = "instances don't forward requests to each other; set `cluster: {redis: URL}` \
    in the configuration of each instance instead";

pub(super) const ABOUT: &str = "\
Run the rate-limit server and LLM proxy.

/NAME/... is the LLM proxy to the upstream NAME in the configuration, /v1 the JSON API for rate \
limits, POST /rate/KEY the same with the API of GoCC (github.com/kivra/gocc), and / a live status \
page. Options override the `serve` \
section of the configuration. Each option can also be set as an environment variable \
PACELINE_<NAME>: PACELINE_MAX_REQUESTS=10 is the same as --max-requests 10.

A request that its limits don't admit waits for up to 4 minutes, or for `waiting.max_wait` of the \
configuration (`unlimited` for no bound). A quota can bound the waits for its own limits with \
`max_wait`, or refuse with `mode: reject`; `serve.mode: reject` refuses all.

Tokens are read only from the environment: clients authenticate with PACELINE_TOKEN, \
administrators with PACELINE_ADMIN_TOKEN. Listening on an address that is not \
loopback requires PACELINE_TOKEN or --allow-anonymous.

SIGHUP reloads the configuration; an invalid file is logged and ignored. The first SIGTERM or \
SIGINT (Ctrl-C) lets responses in progress finish, the second cuts them off; in both cases the \
state is saved. A third signal ends the server immediately. Other signals are ignored.";

const EXAMPLES: &str = "\
Examples:
  Proxy to the upstream `openai` in the configuration, within its limits:
    paceline serve --config paceline.yaml &
    curl http://127.0.0.1:8080/openai/v1/chat/completions \\
      -H \"Authorization: Bearer $OPENAI_API_KEY\" \\
      -d '{\"model\": \"gpt-4o\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'

  Limit every key to 10 requests per second, and wait for admission:
    paceline serve --max-requests 10 --window-millis 1000 &
    curl -X POST 'http://127.0.0.1:8080/rate/user-1?canWait=true'

  Serve a configuration on a free port:
    paceline serve --config paceline.yaml --port 0

Exit codes:
  0    stopped by Ctrl-C or a kill, with all requests answered
  1    stopped, but the state could not be saved
  2    wrong arguments, an invalid configuration, or an unavailable address
  130  stopped by a second signal, with responses still in progress";

#[cfg(test)]
mod tests;

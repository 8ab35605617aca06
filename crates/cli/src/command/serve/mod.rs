//! `tollgate serve`: its arguments, over the configuration, and its run.

mod files;
mod flags;
mod log;
mod run;
mod signals;

use clap::Args;

use super::run::text;
use super::state_args::ConfigArgs;
use flags::{CONFIG_FILE, FLAGS, Flag, Given, INSTANCE_URLS, PORT};
use tollgate::config::{self, LoadOptions, Loaded, Override};
use tollgate_serve::Serve;

pub(super) use run::serve;

/// The arguments of `tollgate serve`. GoCC's arguments have the same meaning as there; each
/// overrides a value below `serve` in the configuration.
#[derive(Debug, Clone, Default, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeArgs {
    /// The configuration file.
    #[command(flatten)]
    pub config: ConfigArgs,

    #[command(flatten)]
    flags: Given,
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
        let set = |flag: &Flag| self.flags.set(flag, variable);
        if let Some((name, _)) = set(&INSTANCE_URLS) {
            return Err(format!("{name}: {NO_INSTANCES}"));
        }
        let mut options = options;
        if let Some((_, path)) = set(&CONFIG_FILE) {
            options = tollgate_serve::with_keys_file(options, path);
        }
        for flag in &FLAGS {
            if let Some((path, (name, value))) = flag.path().zip(set(flag)) {
                options = options.with_override(Override::new(&name, &path, &value));
            }
        }
        let load = |options: &LoadOptions| config::load(options).map_err(text);
        let loaded = load(&options)?;
        match set(&PORT) {
            None => Ok(loaded),
            Some((name, port)) => {
                let said = Serve::of(&loaded.config).map_err(text)?;
                let at = format!("'{}'", listen(said, &port));
                load(&options.with_override(Override::new(&name, &["serve", "listen"], &at)))
            }
        }
    }
}

/// The address that is configured, at another port; what is none is told of as an address.
fn listen(said: &Serve, port: &str) -> String {
    let mut address = said.listen;
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

POST /rate/KEY is the rate-limit API of GoCC, /v1 the JSON API, /NAME/... the proxy to the \
upstream NAME in the configuration, and / a live status page. Options override the `serve` \
section of the configuration. Each option can also be set as an environment variable \
TOLLGATE_<NAME>: TOLLGATE_MAX_REQUESTS=10 is the same as --max-requests 10.

Tokens are read only from the environment: clients authenticate with TOLLGATE_TOKEN, \
administrators with TOLLGATE_ADMIN_TOKEN. Listening on an address that is not \
loopback requires TOLLGATE_TOKEN or --allow-anonymous.

SIGHUP reloads the configuration; an invalid file is logged and ignored. The first SIGTERM or \
SIGINT (Ctrl-C) lets responses in progress finish, the second cuts them off; in both cases the \
state is saved. A third signal ends the server immediately. Other signals are ignored.";

const EXAMPLES: &str = "\
Examples:
  Limit every key to 10 requests per second, and wait for admission:
    tollgate serve --max-requests 10 --window-millis 1000 &
    curl -X POST 'http://127.0.0.1:8080/rate/user-1?canWait=true'

  Serve a configuration on a free port:
    tollgate serve --config tollgate.yaml --port 0

Exit codes:
  0    stopped by Ctrl-C or a kill, with all requests answered
  1    stopped, but the state could not be saved
  2    wrong arguments, an invalid configuration, or an unavailable address
  130  stopped by a second signal, with responses still in progress";

#[cfg(test)]
mod tests;

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

/// The arguments of `tollgate serve`. Those of GoCC mean here what they mean there; each stands over
/// what the configuration says below `serve`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeArgs {
    /// Which limits, providers and upstreams.
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

const NO_INSTANCES: &str = "any instance can be asked here, none forwards to another: give each \
    `cluster: {redis: URL}` in its configuration instead";

pub(super) const ABOUT: &str = "\
Answer over HTTP whether a key may go on, proxy LLM providers within their limits, and show it live.

POST /rate/KEY answers as GoCC does; /v1 is the JSON API; /NAME/... goes to the upstream of that name \
in the configuration; / is a page for people. What the configuration says below `serve` can be said \
here too, or in the environment as TOLLGATE_<NAME>: TOLLGATE_MAX_REQUESTS=10 is --max-requests 10.

Tokens come from the environment alone: clients show TOLLGATE_TOKEN, admins TOLLGATE_ADMIN_TOKEN. It \
listens on this machine's own address, unless one of the first is set or --allow-anonymous is given.

SIGHUP reads the configuration again; a file that can't be used changes nothing, and the log says why. \
The first SIGTERM or SIGINT (Ctrl-C) lets answers that are on their way end, the second doesn't; either \
way the state is saved. A third ends the server at once. No other signal ends it, but for SIGKILL.";

const EXAMPLES: &str = "\
Examples:
  tollgate serve --max-requests 10 --window-millis 1000 &
  curl -X POST 'http://127.0.0.1:8080/rate/user-1?canWait=true'

  tollgate serve --config tollgate.yaml --port 0

Exit codes:
  0    stopped by Ctrl-C or a kill, and everybody answered
  1    stopped, but the state could not be saved
  2    wrong arguments, a configuration that can't be used, an address that can't be listened on
  130  stopped again, while answers were still on their way";

#[cfg(test)]
mod tests;

//! The YAML configuration file: values, errors with positions, overrides and reloading.

mod design;
mod g10;
mod layers;
mod limiter;
mod machines;
mod prices;
mod properties;
mod refusals;
mod reload;
mod schema;
mod secrets;
mod sections;
mod shared_state;
mod stored_limits;
mod values;
mod watch;
mod yaml;

use paceline_config::{Config, Problem};

/// The example of the documentation, which has every section.
const EXAMPLE: &str = include_str!("../../src/example.yaml");

fn parse_valid(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"))
}

fn parse_problems(text: &str) -> Vec<Problem> {
    match Config::parse(text) {
        Ok(config) => panic!("{text}\nis accepted as {config:?}"),
        Err(error) => error.problems,
    }
}

/// Returns the problems, one line each, without the file name: `1:9: share: must be ...`.
fn parse_messages(text: &str) -> Vec<String> {
    let line = |problem: &Problem| problem.to_string().replacen("config:", "", 1);
    parse_problems(text).iter().map(line).collect()
}

//! One file of YAML: what it says, what is refused and where, what goes over it, and how it changes
//! while a program runs.

mod design;
mod layers;
mod limiter;
mod properties;
mod refusals;
mod reload;
mod schema;
mod secrets;
mod sections;
mod values;
mod watch;
mod yaml;

use tollgate::config::{Config, Problem};

/// The example of the docs, which says something in every section.
const EXAMPLE: &str = include_str!("../../../src/config/example.yaml");

fn good(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"))
}

fn bad(text: &str) -> Vec<Problem> {
    match Config::parse(text) {
        Ok(config) => panic!("{text}\nis taken for {config:?}"),
        Err(error) => error.problems,
    }
}

/// The problems, a line each, without the file's name: `1:9: share: must be ...`.
fn said(text: &str) -> Vec<String> {
    let line = |problem: &Problem| problem.to_string().replacen("config:", "", 1);
    bad(text).iter().map(line).collect()
}

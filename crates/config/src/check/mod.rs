//! Converts the fields of a file to valid values, and checks fields that depend on each other.

mod config;
mod limit;
mod prices;
mod providers;
mod quota;
mod reduction;
mod state;
mod urls;
mod waiting;

use std::path::Path;
use std::time::Duration;

use paceline_limiter::quota::{Margin, Share};
use paceline_provider::Profile;

pub use quota::regex;

use crate::error::Problem;
use crate::fields::{HumanDuration, MarginFields};
use crate::tree::{FieldPath, Node};

/// Collects the problems of a configuration while its fields are checked.
#[derive(Debug)]
pub struct Check<'a> {
    tree: &'a Node,
    /// The paths of values that could not be read; their problems are already reported.
    removed: &'a [FieldPath],
    /// The directory to which relative paths are relative.
    folder: &'a Path,
    providers: Vec<Profile>,
    problems: Vec<Problem>,
}

impl<'a> Check<'a> {
    pub(super) fn new(tree: &'a Node, removed: &'a [FieldPath], folder: &'a Path) -> Self {
        Self { tree, removed, folder, providers: Vec::new(), problems: Vec::new() }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Returns the providers of the configuration, built-in and custom.
    pub fn providers(&self) -> &[Profile] {
        &self.providers
    }

    /// Reports a problem of the value at this path. The problem is ignored if a part of the value could
    /// not be read, since that is already reported.
    pub fn report(&mut self, path: &FieldPath, message: impl Into<String>) {
        if !self.removed.iter().any(|removed| path.contains(removed)) {
            let origin = self.tree.origin_of(path).clone();
            self.problems.push(Problem::new(origin, path, message));
        }
    }

    /// Returns the path of the item at index `index` of a list that was read. The list lacks items that
    /// could not be read, so the index in the file may be larger.
    pub fn item(&self, list: &FieldPath, index: usize) -> FieldPath {
        let items = (0..).map(|item| list.item(item));
        let mut kept = items.filter(|item| !self.removed.contains(item));
        kept.nth(index).unwrap_or_else(|| list.clone())
    }

    /// Reports a problem of the name of the map entry at this path.
    pub fn report_name(&mut self, path: &FieldPath, message: impl Into<String>) {
        let origin = self.tree.name_origin(path).unwrap_or(&self.tree.origin).clone();
        self.problems.push(Problem::new(origin, path, message));
    }

    fn share(&mut self, path: &FieldPath, share: f64) -> Share {
        Share::try_from(share).unwrap_or_else(|_| {
            self.report(path, format!("must be above 0 and at most 1, not {share}"));
            Share::WHOLE
        })
    }

    fn margin(&mut self, path: &FieldPath, fields: &MarginFields) -> Margin {
        let MarginFields { percent, lag: HumanDuration(lag) } = *fields;
        self.require_range(&path.key("lag"), lag, Duration::ZERO, MAX_LAG);
        Margin::new(percent, lag).unwrap_or_else(|_| {
            self.report(&path.key("percent"), format!("must be from 0 to 99, not {percent}"));
            Margin::default()
        })
    }

    fn weight(&mut self, path: &FieldPath, weight: u32) -> u32 {
        if weight == 0 {
            self.report(path, "must be at least 1, not 0");
        }
        weight.max(1)
    }

    /// Reports a duration that is shorter than `least` or longer than `most`.
    pub fn require_range(
        &mut self,
        path: &FieldPath,
        duration: Duration,
        least: Duration,
        most: Duration,
    ) {
        if !(least..=most).contains(&duration) {
            self.report(path, format!("must be from {least:?} to {most:?}, not {duration:?}"));
        }
    }
}

/// The maximum of `margin.lag`.
const MAX_LAG: Duration = Duration::from_secs(3_600);

//! Converts the fields of a file to valid values, and checks fields that depend on each other.

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

use paceline_limiter::limiter::{Reduction, UnknownKey};
use paceline_limiter::quota::{Margin, Share};
use paceline_provider::Profile;
use paceline_provider::price::PriceList;

pub use quota::regex;

use crate::config::Config;
use crate::error::Problem;
use crate::fields::{Fields, HumanDuration, MarginFields, TextOrMap, UnknownKeyName};
use crate::tree::{FieldPath, Node};
use crate::value::RetryConfig;

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

    /// Returns the configuration of these fields, without the values of registered sections. It is valid
    /// only if no problem was reported.
    pub(super) fn config(&mut self, fields: &Fields) -> Config {
        let fields = fields.clone().effective();
        self.providers = self.profiles(fields.providers.as_deref().unwrap_or_default());
        let quotas = fields.quotas.map(|quotas| self.quotas(&quotas.0)).unwrap_or_default();
        let unknown_key = self.unknown_key(fields.unknown_key);
        if fields.cluster.is_some() {
            self.refuse_totals(&quotas, &unknown_key);
        }
        let waiting = fields.waiting.unwrap_or_default();
        let reduction = fields.reduction.as_ref();
        let reduction = reduction.map_or(Reduction::ADAPTIVE, |fields| self.reduction(fields));
        let attempts = fields.retry.unwrap_or_default().attempts;
        let margin = fields.margin.unwrap_or_default();
        let prices = PriceList::from(self.prices(fields.prices.unwrap_or_default()));
        Config {
            unknown_key,
            stated_prices: prices.current(),
            prices,
            waiting: self.waiting(waiting),
            reduction,
            retry: RetryConfig { attempts: self.attempts(attempts) },
            margin: self.margin(&FieldPath::new(["margin"]), &margin),
            share: self.share(&FieldPath::new(["share"]), fields.share.unwrap_or(1.0)),
            store: fields.store.and_then(|store| self.store(store)),
            bus: fields.bus.and_then(|bus| self.bus(bus)),
            cluster: fields.cluster.and_then(|cluster| self.cluster(cluster)),
            account_limits: self.account_limits(fields.providers.as_deref().unwrap_or_default()),
            providers: self.providers.clone(),
            quotas,
            sections: Default::default(),
        }
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

    fn attempts(&mut self, attempts: u32) -> core::num::NonZeroU32 {
        let path = FieldPath::new(["retry", "attempts"]);
        if !(1..=MAX_ATTEMPTS).contains(&attempts) {
            self.report(&path, format!("must be from 1 to {MAX_ATTEMPTS}, not {attempts}"));
        }
        attempts.try_into().unwrap_or(core::num::NonZeroU32::MIN)
    }

    fn margin(&mut self, path: &FieldPath, fields: &MarginFields) -> Margin {
        let MarginFields { percent, lag: HumanDuration(lag) } = *fields;
        self.require_range(&path.key("lag"), lag, Duration::ZERO, MAX_LAG);
        Margin::new(percent, lag).unwrap_or_else(|_| {
            self.report(&path.key("percent"), format!("must be from 0 to 99, not {percent}"));
            Margin::default()
        })
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

    fn unknown_key(
        &mut self,
        fields: Option<TextOrMap<UnknownKeyName, crate::fields::QuotaFields>>,
    ) -> UnknownKey {
        match fields {
            None | Some(TextOrMap::Text(UnknownKeyName::Allow)) => UnknownKey::Allow,
            Some(TextOrMap::Text(UnknownKeyName::Refuse)) => UnknownKey::Refuse,
            Some(TextOrMap::Text(UnknownKeyName::Learn)) => UnknownKey::Learn,
            Some(TextOrMap::Map(quota)) => {
                let path = FieldPath::new(["unknown_key"]);
                if quota.regex {
                    self.report(&path.key("regex"), "not allowed here; remove it");
                }
                UnknownKey::Quota(self.quota(&path, &quota))
            }
        }
    }
}

/// The maximum of `retry.attempts`.
const MAX_ATTEMPTS: u32 = 100;

/// The maximum of `margin.lag`.
const MAX_LAG: Duration = Duration::from_secs(3_600);

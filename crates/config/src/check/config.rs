use std::num::NonZeroU32;

use paceline_limiter::limiter::{Reduction, UnknownKey};
use paceline_provider::price::PriceList;

use super::Check;
use crate::config::Config;
use crate::fields::{Fields, QuotaFields, TextOrMap, UnknownKeyName};
use crate::tree::FieldPath;
use crate::value::RetryConfig;

impl Check<'_> {
    /// Returns the configuration of these fields, without the values of registered sections. It is valid
    /// only if no problem was reported.
    pub(crate) fn config(&mut self, fields: &Fields) -> Config {
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

    fn attempts(&mut self, attempts: u32) -> NonZeroU32 {
        let path = FieldPath::new(["retry", "attempts"]);
        if !(1..=MAX_ATTEMPTS).contains(&attempts) {
            self.report(&path, format!("must be from 1 to {MAX_ATTEMPTS}, not {attempts}"));
        }
        attempts.try_into().unwrap_or(NonZeroU32::MIN)
    }

    fn unknown_key(
        &mut self,
        fields: Option<TextOrMap<UnknownKeyName, QuotaFields>>,
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

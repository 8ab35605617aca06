use std::ops::RangeInclusive;
use std::time::Duration;

use paceline_provider::account_limits::{AccountLimits, NoAccountLimits};
use paceline_provider::{COMPATIBLE, InvalidProfile, OPENAI, Profile};

use super::Check;
use crate::fields::{HumanDuration, ProviderFields, ProviderName, TextOrMap};
use crate::tree::FieldPath;

impl Check<'_> {
    pub(super) fn profiles(
        &mut self,
        fields: &[TextOrMap<ProviderName, ProviderFields>],
    ) -> Vec<Profile> {
        let mut providers = Vec::<Profile>::new();
        for (at, fields) in fields.iter().enumerate() {
            let path = self.item(&FieldPath::new(["providers"]), at);
            let provider = match fields {
                TextOrMap::Text(ProviderName(profile)) => Some(*profile),
                TextOrMap::Map(fields) => self.custom(&path, fields),
            };
            let Some(provider) = provider else { continue };
            if providers.iter().any(|other| other.name() == provider.name()) {
                self.report(&path, format!("duplicate provider {:?}", provider.name()));
            }
            if let Some(error) = provider.quotas().iter().find_map(|quota| quota.quota().err()) {
                self.report(&path, format!("its default quotas can't be used: {error}"));
            }
            providers.push(provider);
        }
        providers
    }

    /// Returns the accounts whose limits are read from their providers.
    pub(super) fn account_limits(
        &mut self,
        fields: &[TextOrMap<ProviderName, ProviderFields>],
    ) -> Vec<AccountLimits> {
        let mut accounts = Vec::new();
        for (at, fields) in fields.iter().enumerate() {
            let TextOrMap::Map(fields) = fields else { continue };
            let path = self.item(&FieldPath::new(["providers"]), at);
            match self.account(fields) {
                Ok(account) => accounts.extend(account),
                Err((field, message)) => self.report(&path.key(field), message),
            }
        }
        accounts
    }

    /// Returns the account whose limits are read, or the field that is wrong.
    fn account(
        &self,
        fields: &ProviderFields,
    ) -> Result<Option<AccountLimits>, (&'static str, String)> {
        let ProviderFields { name, limits_from, project, workspace, refresh, .. } = fields;
        let settings = [
            ("project", project.is_some()),
            ("workspace", workspace.is_some()),
            ("refresh", refresh.is_some()),
        ];
        if limits_from.is_none() {
            let lone = settings.into_iter().find(|(_, is_set)| *is_set);
            let needs = |(field, _)| (field, "needs `limits_from: provider`".to_owned());
            return lone.map_or(Ok(None), |field| Err(needs(field)));
        }
        // An invalid provider has been reported.
        let named = self.providers.iter().find(|profile| profile.name() == name);
        let Some(&profile) = named else { return Ok(None) };
        let (part, other) = match profile.built_in() == OPENAI {
            true => (("project", project), ("workspace", workspace)),
            false => (("workspace", workspace), ("project", project)),
        };
        if other.1.is_some() {
            let message = format!("provider {name} has no such part of an account");
            return Err((other.0, message));
        }
        let account = AccountLimits::new(profile, part.1.as_deref());
        let mut account = account.map_err(|error| match error {
            NoAccountLimits::NoApi { .. } => ("limits_from", error.to_string()),
            _ => (part.0, error.to_string()),
        })?;
        if let Some(HumanDuration(refresh)) = refresh {
            if !REFRESH.contains(refresh) {
                return Err(("refresh", "must be from 10s to 1d".to_owned()));
            }
            account.refresh = *refresh;
        }
        Ok(Some(account))
    }

    fn custom(&mut self, path: &FieldPath, fields: &ProviderFields) -> Option<Profile> {
        let ProviderFields { name, like, base_url, .. } = fields;
        let like = like.map(|ProviderName(profile)| profile);
        if let (Some(built_in), None, None) = (Profile::named(name), like, base_url) {
            return Some(built_in);
        }
        let rules = like.or_else(|| Profile::named(name)).unwrap_or(COMPATIBLE);
        let profile = rules.like(name, base_url.as_ref().map(|url| url.expose()));
        let wrong = |error: InvalidProfile| {
            let field = match error {
                InvalidProfile::BaseUrl { .. } => "base_url",
                _ => "name",
            };
            let message = match name.contains("://") {
                true => "must be a name, not a URL".to_owned(),
                false => error.to_string(),
            };
            self.report(&path.key(field), message);
        };
        profile.map_err(wrong).ok()
    }
}

/// The allowed times between two readings of an account's limits.
const REFRESH: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);

use super::Check;
use crate::config::fields::{ProviderFields, ProviderName, TextOrMap};
use crate::config::tree::Steps;
use crate::provider::{COMPATIBLE, InvalidProfile, Profile};

impl Check<'_> {
    pub(super) fn profiles(
        &mut self,
        fields: &[TextOrMap<ProviderName, ProviderFields>],
    ) -> Vec<Profile> {
        let mut providers = Vec::<Profile>::new();
        for (at, fields) in fields.iter().enumerate() {
            let steps = self.item(&Steps::to(["providers"]), at);
            let provider = match fields {
                TextOrMap::Text(ProviderName(profile)) => Some(*profile),
                TextOrMap::Map(fields) => self.custom(&steps, fields),
            };
            let Some(provider) = provider else { continue };
            if providers.iter().any(|other| other.name() == provider.name()) {
                self.wrong(&steps, format!("a second provider named {:?}", provider.name()));
            }
            if let Some(error) = provider.quotas().iter().find_map(|quota| quota.quota().err()) {
                self.wrong(&steps, format!("a default quota can't be read: {error}"));
            }
            providers.push(provider);
        }
        providers
    }

    fn custom(&mut self, steps: &Steps, fields: &ProviderFields) -> Option<Profile> {
        let ProviderFields { name, like, base_url } = fields;
        let like = like.map(|ProviderName(profile)| profile);
        let rules = like.or_else(|| Profile::named(name)).unwrap_or(COMPATIBLE);
        let profile = rules.like(name, base_url.as_ref().map(|url| url.expose()));
        let wrong = |error: InvalidProfile| {
            let field = match error {
                InvalidProfile::BaseUrl { .. } => "base_url",
                _ => "name",
            };
            let what = match name.contains("://") {
                true => "must be a name, not a URL".to_owned(),
                false => error.to_string(),
            };
            self.wrong(&steps.key(field), what);
        };
        profile.map_err(wrong).ok()
    }
}

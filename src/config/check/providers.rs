use super::Check;
use crate::config::fields::{ProviderFields, ProviderName, TextOrMap};
use crate::config::tree::FieldPath;
use crate::provider::{COMPATIBLE, InvalidProfile, Profile};

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

    fn custom(&mut self, path: &FieldPath, fields: &ProviderFields) -> Option<Profile> {
        let ProviderFields { name, like, base_url } = fields;
        let like = like.map(|ProviderName(profile)| profile);
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

use super::Check;
use super::urls::HTTP;
use crate::config::fields::{ProviderFields, ProviderName, TextOrMap};
use crate::config::tree::Steps;
use crate::config::value::Provider;
use crate::provider::{COMPATIBLE, Profile};

impl Check<'_> {
    pub(super) fn providers(
        &mut self,
        fields: &[TextOrMap<ProviderName, ProviderFields>],
    ) -> Vec<Provider> {
        let mut providers = Vec::<Provider>::new();
        for (at, fields) in fields.iter().enumerate() {
            let steps = self.item(&Steps::to(["providers"]), at);
            let provider = match fields {
                TextOrMap::Text(ProviderName(profile)) => {
                    Provider { name: profile.name().to_owned(), profile: *profile, base_url: None }
                }
                TextOrMap::Map(fields) => self.custom(&steps, fields),
            };
            if providers.iter().any(|other| other.name == provider.name) {
                self.wrong(&steps, format!("a second provider named {:?}", provider.name));
            }
            providers.push(provider);
        }
        providers
    }

    fn custom(&mut self, steps: &Steps, fields: &ProviderFields) -> Provider {
        let ProviderFields { name, like, base_url } = fields;
        if name.is_empty() {
            self.wrong(&steps.key("name"), "must not be empty");
        }
        if let Some(url) = base_url {
            self.scheme(&steps.key("base_url"), url, HTTP);
        }
        let built_in = Profile::named(name);
        let like = like.map(|ProviderName(profile)| profile);
        if built_in.is_some() && like.is_some() && built_in != like {
            let what = "is the name of a built-in provider with rules of its own; give another";
            self.wrong(&steps.key("name"), what);
        }
        let profile = like.or(built_in).unwrap_or(COMPATIBLE);
        Provider { name: name.clone(), profile, base_url: base_url.clone() }
    }
}

use paceline::limiter::UnknownKey;
use paceline::provider::Profile;
use paceline_config::Config;

/// Returns the configuration of a run: its own profile comes first, models without a quota learn
/// their limits from responses instead of being unlimited, and the wait queue holds the whole
/// input.
#[must_use]
pub fn configured(config: Config, profile: Profile) -> Config {
    let mut config = config;
    config.providers.retain(|other| *other != profile);
    config.providers.insert(0, profile);
    if config.unknown_key == UnknownKey::Allow {
        config.unknown_key = UnknownKey::Learn;
    }
    config.waiting.max_waiting = usize::MAX;
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::provider::{GROQ, OPENAI};

    #[test]
    fn run_profile_comes_first_and_unknown_models_learn() {
        let text = "providers: [openai, groq]\nwaiting: {max_waiting: 5}";
        let config = configured(Config::parse(text).expect("the configuration is valid"), GROQ);
        assert_eq!(config.providers, [GROQ, OPENAI]);
        assert_eq!(
            (config.unknown_key, config.waiting.max_waiting),
            (UnknownKey::Learn, usize::MAX)
        );
        let refuses = Config::parse("unknown_key: refuse").expect("the configuration is valid");
        assert_eq!(configured(refuses, OPENAI).unknown_key, UnknownKey::Refuse);
    }
}

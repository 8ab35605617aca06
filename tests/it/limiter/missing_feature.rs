use paceline::limiter::{BuildError, Limiter};
use paceline::provider::{GEMINI, OPENAI};

/// The days of the real profile begin at midnight in California, which is an error without time zones, never a day in UTC.
#[test]
fn provider_of_zone_without_zones_feature_is_an_error() {
    assert!(Limiter::builder().provider(OPENAI).build().is_ok());
    let error = Limiter::builder().provider(GEMINI).build().unwrap_err();
    assert!(matches!(error, BuildError::UnknownZone(_)), "{error}");
    assert!(error.to_string().contains("`zones`"), "{error}");
    assert!(Limiter::builder().build().unwrap().quotas().add_provider(GEMINI).is_err());
    assert!(GEMINI.quotas().iter().any(|default| default.quota().is_err()));
}

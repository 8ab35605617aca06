use paceline::Timestamp;
use paceline::limiter::{BuildError, Limiter};
#[cfg(not(feature = "zones"))]
use paceline::provider::GEMINI;
use paceline::provider::{OPENAI, Profile};
use paceline::quota::{Calendar, Period, Quota};
use std::time::Duration;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Builds a limiter with the provider's default quotas.
fn build(profile: Profile) -> Result<Limiter, BuildError> {
    Limiter::builder().provider(profile).build()
}

#[test]
fn utc_calendar_without_zones_feature_works() {
    assert!(build(OPENAI).is_ok());
    let month = Calendar::new(Period::Month, "UTC").unwrap();
    // The 29th of February 2028.
    let window = month.around(at(1_835_395_200_000_000_000));
    assert_eq!(window.end - window.start, Duration::from_secs(29 * 86_400));
}

#[cfg(not(feature = "zones"))]
#[test]
fn zone_calendar_without_zones_feature_is_an_error() {
    let error = build(GEMINI).unwrap_err();
    assert!(matches!(error, BuildError::UnknownZone(_)), "{error}");
    assert!(error.to_string().contains("`zones`"), "{error}");
    assert!(Limiter::builder().build().unwrap().quotas().add_provider(GEMINI).is_err());
    assert!(GEMINI.quotas().iter().any(|default| default.quota().is_err()));
}

#[cfg(not(feature = "regex"))]
#[test]
fn regex_quota_without_regex_feature_is_an_error() {
    let error = Limiter::builder().quota("regex:user-.*", Quota::new().rpm(1)).build().unwrap_err();
    assert!(matches!(error, BuildError::MissingFeature(_)), "{error}");
    let expected = "the quota `regex:user-.*`: needs the Cargo feature `regex`; \
                    enable it for the crate `paceline`";
    assert_eq!(error.to_string(), expected);
    let limiter = Limiter::builder().build().unwrap();
    let set = limiter.quotas().set("regex:user-.*", &Quota::new().rpm(1));
    assert_eq!((set, limiter.quotas().len()), (Err(error), 0));
}

#[cfg(feature = "regex")]
#[test]
fn regex_quota_with_regex_feature_applies() {
    let limiter = Limiter::builder().quota("regex:user-.*", Quota::new().rpm(1)).build().unwrap();
    assert!(!limiter.quotas().of("user-7").is_unlimited());
}

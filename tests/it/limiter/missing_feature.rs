use std::time::Duration;
use tollgate::Timestamp;
use tollgate::limiter::{BuildError, Limiter};
#[cfg(not(feature = "zones"))]
use tollgate::provider::GEMINI;
use tollgate::provider::{OPENAI, Profile};
use tollgate::quota::{Calendar, Period, Quota};

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A provider's default quotas, each of them as it is or an error.
fn build(profile: Profile) -> Result<Limiter, BuildError> {
    Limiter::builder().provider(profile).build()
}

#[test]
fn utc_and_providers_without_days_need_no_zones() {
    assert!(build(OPENAI).is_ok());
    let month = Calendar::new(Period::Month, "UTC").unwrap();
    // The 29th of February 2028.
    let window = month.around(at(1_835_395_200_000_000_000));
    assert_eq!(window.end - window.start, Duration::from_secs(29 * 86_400));
}

#[cfg(not(feature = "zones"))]
#[test]
fn days_of_a_zone_are_an_error_without_zones() {
    let error = build(GEMINI).unwrap_err();
    assert!(matches!(error, BuildError::UnknownZone(_)), "{error}");
    assert!(error.to_string().contains("`zones`"), "{error}");
    assert!(Limiter::builder().build().unwrap().quotas().add_provider(GEMINI).is_err());
    assert!(GEMINI.quotas().iter().any(|default| default.quota().is_err()));
}

#[cfg(not(feature = "regex"))]
#[test]
fn a_regular_expression_is_an_error_without_regex() {
    let error = Limiter::builder().quota("regex:user-.*", Quota::new().rpm(1)).build().unwrap_err();
    assert!(matches!(error, BuildError::MissingFeature(_)), "{error}");
    let said =
        "the quota `regex:user-.*` needs the feature `regex`, which this build of tollgate lacks";
    assert_eq!(error.to_string(), said);
}

#[cfg(feature = "regex")]
#[test]
fn a_regular_expression_is_a_quota_with_regex() {
    let limiter = Limiter::builder().quota("regex:user-.*", Quota::new().rpm(1)).build().unwrap();
    assert!(!limiter.quotas().of("user-7").is_unlimited());
}

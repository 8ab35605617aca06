//! Without a feature, what needs it is an error that names it.

use std::time::Duration;

use paceline_limiter::Timestamp;
#[cfg(not(all(feature = "regex", feature = "zones")))]
use paceline_limiter::limiter::BuildError;
use paceline_limiter::limiter::{LimitRules, Limiter};
use paceline_limiter::quota::{Algorithm, Calendar, Dimension, Period, Quota, UnknownZone};

/// A provider whose day begins at midnight in a time zone.
#[derive(Debug)]
struct DailyIn(&'static str);

impl LimitRules for DailyIn {
    fn name(&self) -> &'static str {
        "daily"
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::SlidingWindow
    }

    fn default_quotas(&self) -> Result<Vec<(&'static str, Quota)>, UnknownZone> {
        let day = Calendar::new(Period::Day, self.0)?;
        Ok(vec![("m", Quota::new().on_calendar(Dimension::Requests, 1_000, &day))])
    }
}

#[test]
fn utc_calendar_without_zones_feature_works() {
    assert!(Limiter::builder().provider(DailyIn("UTC")).build().is_ok());
    let month = Calendar::new(Period::Month, "UTC").unwrap();
    // The 29th of February 2028.
    let window = month.around(Timestamp::from_nanos(1_835_395_200_000_000_000));
    assert_eq!(window.end - window.start, Duration::from_secs(29 * 86_400));
}

#[cfg(not(feature = "zones"))]
#[test]
fn zone_calendar_without_zones_feature_is_an_error() {
    let daily = DailyIn("America/Los_Angeles");
    let error = Limiter::builder().provider(daily).build().unwrap_err();
    assert!(matches!(error, BuildError::UnknownZone(_)), "{error}");
    assert!(error.to_string().contains("`zones`"), "{error}");
    let limiter = Limiter::builder().build().unwrap();
    assert!(limiter.quotas().add_provider(DailyIn("America/Los_Angeles")).is_err());
    assert!(limiter.quotas().rules_of("m").is_none(), "nothing of it is kept");
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

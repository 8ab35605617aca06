//! g10: profiles, then explicit quotas; what is kept never overrides what is configured; none given
//! is an error.

use std::fs;

use tollgate::{Limiter, Quota};

fn rpm(limiter: &Limiter, key: &str) -> u64 {
    limiter.quotas().of(key).limits().first().map_or(0, |limit| limit.amount())
}

#[tokio::test]
async fn g10_explicit_quotas_count_before_profiles_and_configured_ones_before_kept_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.yaml");
    let store = "store: {yaml: state.yaml}\n";
    fs::write(&path, format!("providers: [openai]\nquotas: {{gpt-4o: {{rpm: 7}}}}\n{store}"))
        .unwrap();
    let limiter = Limiter::from_config(&path).unwrap();
    assert_eq!((rpm(&limiter, "gpt-4o"), rpm(&limiter, "gpt-4o-mini")), (7, 500));

    // Set while it ran: kept, and for a name that isn't configured back after a restart.
    limiter.quotas().set("gpt-4o", &Quota::new().rpm(8));
    limiter.quotas().set("mine", &Quota::new().rpm(9));
    assert_eq!(rpm(&limiter, "gpt-4o"), 8);
    limiter.close().await;
    drop(limiter);
    let again = Limiter::from_config(&path).unwrap();
    assert_eq!((rpm(&again, "gpt-4o"), rpm(&again, "mine")), (7, 9));
}

#[test]
fn g10_no_provider_is_taken_silently() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.yaml");
    fs::write(&path, "waiting: {max_wait: 5s}\n").unwrap();
    let error = Limiter::from_config(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        "the configuration limits nothing; set `providers`, `quotas` or `unknown_key`"
    );
    fs::write(&path, "unknown_key: learn\n").unwrap();
    assert!(Limiter::from_config(&path).is_ok());
}

//! g10: explicit quotas override profiles, configured quotas override stored ones, and a file
//! without quotas and providers is an error.

use std::fs;

use paceline::{Limiter, Quota};
use paceline_config as config;

fn rpm(limiter: &Limiter, key: &str) -> u64 {
    limiter.quotas().of(key).limits().first().map_or(0, |limit| limit.amount())
}

#[tokio::test]
async fn g10_configured_quotas_override_profiles_and_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paceline.yaml");
    let store = "store: {yaml: state.yaml}\n";
    fs::write(&path, format!("providers: [openai]\nquotas: {{gpt-4o: {{rpm: 7}}}}\n{store}"))
        .unwrap();
    let limiter = config::open(&path).unwrap().limiter;
    assert_eq!((rpm(&limiter, "gpt-4o"), rpm(&limiter, "gpt-4o-mini")), (7, 500));

    // A quota that is set at run time is stored, and restored after a restart unless it is configured.
    limiter.quotas().set("gpt-4o", &Quota::new().rpm(8)).unwrap();
    limiter.quotas().set("mine", &Quota::new().rpm(9)).unwrap();
    assert_eq!(rpm(&limiter, "gpt-4o"), 8);
    limiter.close().await;
    drop(limiter);
    let again = config::open(&path).unwrap().limiter;
    assert_eq!((rpm(&again, "gpt-4o"), rpm(&again, "mine")), (7, 9));
}

#[test]
fn g10_file_without_provider_or_quota_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paceline.yaml");
    fs::write(&path, "waiting: {max_wait: 5s}\n").unwrap();
    let error = config::open(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        "the configuration limits nothing; set `providers`, `quotas` or `unknown_key`"
    );
    fs::write(&path, "unknown_key: learn\n").unwrap();
    assert!(config::open(&path).is_ok());
}

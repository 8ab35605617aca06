use std::env;
use std::time::Duration;

use super::exit::text;
use crate::batch::http_client;
use paceline::limiter::Limiter;
use paceline::middleware::follow_account_limits;
use paceline_config::Config;

/// Reads the limits of accounts from their providers, as the configuration says, now and then at intervals.
///
/// # Errors
/// Returns an error that names the environment variable of a missing admin key, before anything is sent.
pub(super) fn follow(config: &Config, limiter: &Limiter) -> Result<(), String> {
    for account in &config.account_limits {
        let (provider, variable) = (account.profile().name(), account.key_variable());
        let key =
            env::var(variable).ok().filter(|key| !key.trim().is_empty()).ok_or_else(|| {
                format!(
                    "provider {provider}: limits_from: provider needs an admin key; set {variable}"
                )
            })?;
        let base = account.urls().swap_remove(0).parse().map_err(text)?;
        let client = http_client(&base).timeout(TIMEOUT).build().map_err(text)?;
        tokio::spawn(follow_account_limits(client, account.clone(), key, limiter.downgrade()));
    }
    Ok(())
}

/// The time for one response.
const TIMEOUT: Duration = Duration::from_secs(30);

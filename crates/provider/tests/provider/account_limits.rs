//! Limits of accounts, by the examples of the providers' documentation.

use paceline_limiter::Quota;
use paceline_provider::account_limits::{AccountLimits, ModelLimits, NoAccountLimits};
use paceline_provider::{ANTHROPIC, GROQ, OPENAI};

/// platform.claude.com/docs/en/manage-claude/rate-limits-api, "List all organization rate limits".
const ORGANIZATION: &[u8] = br#"{"data": [
    {"type": "rate_limit", "group_type": "model_group", "models": ["claude-opus-5-5"], "limits": [
        {"type": "requests_per_minute", "value": 4000},
        {"type": "input_tokens_per_minute", "value": 10000000},
        {"type": "output_tokens_per_minute", "value": 800000}]},
    {"type": "rate_limit", "group_type": "model_group",
     "models": ["claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-6"], "limits": [
        {"type": "requests_per_minute", "value": 4000},
        {"type": "input_tokens_per_minute", "value": 10000000},
        {"type": "output_tokens_per_minute", "value": 800000}]},
    {"type": "rate_limit", "group_type": "batch", "models": null,
     "limits": [{"type": "enqueued_batch_requests", "value": 500000}]}], "next_page": null}"#;

/// The same page, "Workspace rate limits": only what differs from the organization.
const WORKSPACE: &[u8] = br#"{"data": [
    {"type": "workspace_rate_limit", "group_type": "model_group", "models": ["claude-opus-5-5"], "limits": [
        {"type": "requests_per_minute", "value": 1000, "org_limit": 4000},
        {"type": "input_tokens_per_minute", "value": 500000, "org_limit": 10000000}]}],
    "next_page": null}"#;

/// developers.openai.com/api/reference, "List project rate limits".
const PROJECT: &[u8] = br#"{"object": "list", "data": [
    {"object": "project.rate_limit", "id": "rl-ada", "model": "ada", "max_requests_per_1_minute": 600,
     "max_tokens_per_1_minute": 150000, "max_images_per_1_minute": 10, "max_requests_per_1_day": 9},
    {"object": "project.rate_limit", "id": "rl-none", "model": "none", "max_requests_per_1_minute": 0,
     "max_tokens_per_1_minute": 0}], "first_id": "rl-ada", "last_id": "rl-none", "has_more": true}"#;

#[test]
fn models_of_a_group_share_its_limits() {
    let account = AccountLimits::new(ANTHROPIC, None).unwrap();
    let page = account.read(ORGANIZATION).unwrap();
    let quota = Quota::new().rpm(4_000).itpm(10_000_000).otpm(800_000);
    let family = ["claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-6"];
    let expected =
        [ModelLimits::new(["claude-opus-5-5"], quota.clone()), ModelLimits::new(family, quota)];
    assert_eq!((page.limits, page.next), (expected.to_vec(), None));
    assert_eq!(account.urls(), ["https://api.anthropic.com/v1/organizations/rate_limits"]);
}

#[test]
fn workspace_limits_replace_those_of_the_organization() {
    let account = AccountLimits::new(ANTHROPIC, Some("wrkspc_1")).unwrap();
    let base = "https://api.anthropic.com/v1/organizations";
    let urls = [format!("{base}/rate_limits"), format!("{base}/workspaces/wrkspc_1/rate_limits")];
    assert_eq!(account.urls(), urls);
    let mut limits = account.read(ORGANIZATION).unwrap().limits;
    ModelLimits::merge(&mut limits, account.read(WORKSPACE).unwrap().limits);
    let own = Quota::new().rpm(1_000).itpm(500_000).otpm(800_000);
    assert_eq!(limits[0].quota, own);
    let amounts = limits[1].quota.limits().iter().map(|limit| limit.amount());
    assert_eq!(amounts.collect::<Vec<_>>(), [4_000, 10_000_000, 800_000]);
}

#[test]
fn project_limits_are_read_page_by_page() {
    let account = AccountLimits::new(OPENAI, Some("proj_abc")).unwrap();
    let page = account.read(PROJECT).unwrap();
    let expected = [ModelLimits::new(["ada"], Quota::new().rpm(600).tpm(150_000).rpd(9))];
    assert_eq!((page.limits, page.next.as_deref()), (expected.to_vec(), Some("rl-none")));
    assert_eq!(account.cursor_parameter(), "after");
}

#[test]
fn accounts_without_stated_limits_are_refused() {
    let error = |profile, part| AccountLimits::new(profile, part).unwrap_err();
    assert_eq!(error(GROQ, None), NoAccountLimits::NoApi { provider: "groq" });
    assert_eq!(error(OPENAI, None), NoAccountLimits::NoProject);
    assert_eq!(error(OPENAI, Some("a/../b")), NoAccountLimits::InvalidPart);
    let account = AccountLimits::new(ANTHROPIC, None).unwrap();
    let invalid = account.read(br#"{"error": {"type": "not_found_error"}}"#).unwrap_err();
    assert!(invalid.to_string().contains("missing field `data`"), "{invalid}");
    let unknown = br#"{"data": [{"models": ["m"], "limits": [{"type": "new", "value": 5}]}]}"#;
    assert_eq!(account.read(unknown).unwrap().limits, []);
}

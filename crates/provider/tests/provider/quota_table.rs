//! The table of built-in quotas.

use paceline_limiter::Timestamp;
use paceline_provider::{
    AI21, ANTHROPIC, BEDROCK_MANTLE, COHERE, COMPATIBLE, DEEPSEEK, FIREWORKS, GEMINI, MOONSHOT,
    OPENAI, OPENROUTER, Profile, QuotaTable, SAMBANOVA, VOYAGE, WRITER, XAI,
};
use serde_json::{Value, json};

#[test]
fn table_rows_are_aligned_with_limits_date_and_source() {
    let custom = OPENAI.like("my-vllm", "http://gpu-7:8000").unwrap();
    let text = QuotaTable::of(&[OPENROUTER, COMPATIBLE, custom]).to_string();
    let expected = "\
PROVIDER    MODELS             RPM  RPD  UNTIL MIDNIGHT IN  ALGORITHM       AS OF       SOURCE
openrouter  */*:free (shared)   20   50  UTC                sliding_window  2026-10-17  https://openrouter.ai/docs/api-reference/limits
compatible  none built in                                   sliding_window
my-vllm     none built in                                   token_bucket

openrouter: an account that has bought less than 10 credits";
    assert_eq!(text, expected);
}

#[test]
fn limits_of_each_kind_have_a_column() {
    let rows = |profile| {
        let text = QuotaTable::of(&[profile]).to_string();
        text.lines().map(|line| line.split("http").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let row = |profile, model: &str| {
        let rows = rows(profile);
        let row = rows.iter().find(|row| cells(row).get(1).is_some_and(|cell| cell == model));
        (cells(&rows[0]).join(" "), cells(row.expect(model)).join(" "))
    };
    for (profile, model, headings, cells) in [
        (
            GEMINI,
            "gemini-2.5-flash",
            "PROVIDER MODELS RPM TPM RPD UNTIL MIDNIGHT IN ALGORITHM AS OF SOURCE",
            "gemini gemini-2.5-flash 1,000 1,000,000 10,000 America/Los_Angeles token_bucket 2026-10-05",
        ),
        (
            ANTHROPIC,
            "claude-haiku-4-5*",
            "PROVIDER MODELS RPM ITPM OTPM ALGORITHM AS OF SOURCE",
            "anthropic claude-haiku-4-5* 1,000 2,000,000 400,000 token_bucket 2026-09-29",
        ),
        (
            XAI,
            "grok-4.7",
            "PROVIDER MODELS RPS TPM ALGORITHM AS OF SOURCE",
            "xai grok-4.7 150 50,000,000 sliding_window 2026-10-17",
        ),
        (
            COHERE,
            "embed-*",
            "PROVIDER MODELS IMAGES/MIN INPUTS/MIN ALGORITHM AS OF SOURCE",
            "cohere embed-* (shared) 400 2,000 sliding_window 2026-11-25",
        ),
        (
            MOONSHOT,
            "kimi-*",
            "PROVIDER MODELS IN FLIGHT RPM TPM TPD ALGORITHM AS OF SOURCE",
            "moonshot kimi-* (shared) 1 3 500,000 1,500,000 sliding_window 2026-10-03",
        ),
        (
            DEEPSEEK,
            "deepseek-v4-pro",
            "PROVIDER MODELS IN FLIGHT ALGORITHM AS OF SOURCE",
            "deepseek deepseek-v4-pro 500 sliding_window 2026-11-23",
        ),
    ] {
        let (heading, row) = row(profile, model);
        assert_eq!(heading, headings);
        let row = row.replace("AI Studio's rate-limit page (", "");
        assert_eq!(row.trim_end(), cells);
    }
}

/// The numbers of the pages that state one table for all accounts of a tier. "The voyage-3.5 API rate limits are set at
/// 2000 RPM and 8M TPM": docs.voyageai.com/docs/rate-limits. "RPM (requests per minute): 400, TPM (token per min):
/// 25,000": dev.writer.com/api-reference/rate-limits. "Jamba Large 10 200": docs.ai21.com/reference/api-rate-limits.
#[test]
fn documented_tables_are_the_default_quotas() {
    for (profile, model, amounts) in [
        (OPENAI, "gpt-5.5", &[500, 500_000][..]),
        (BEDROCK_MANTLE, "anthropic.claude-opus-5", &[20_000_000, 2_000_000]),
        (VOYAGE, "voyage-3.5", &[2_000, 8_000_000]),
        (VOYAGE, "voyage-3.5-lite", &[2_000, 16_000_000]),
        (VOYAGE, "rerank-2.5", &[2_000, 2_000_000]),
        (WRITER, "palmyra*", &[400, 25_000]),
        (AI21, "jamba-large*", &[10, 200]),
        (SAMBANOVA, "gpt-oss-120b", &[60, 12_000]),
        (FIREWORKS, "accounts/fireworks/models/*", &[3_600_000, 36_000]),
    ] {
        let row = profile.quotas().iter().find(|quota| quota.pattern == model).expect(model);
        let quota = row.quota().unwrap();
        let limits: Vec<_> =
            quota.limits().iter().map(paceline_limiter::quota::Limit::amount).collect();
        assert_eq!(limits, amounts, "{model}");
    }
}

#[test]
fn old_quotas_are_shown_with_age_and_warned_about() {
    let day = |days: u64| Timestamp::from_nanos(days * 86_400 * 1_000_000_000);
    // 2026-10-17 is day 20,743; the table of OpenRouter has one row, of that day.
    let at = |days| QuotaTable::of(&[OPENROUTER, COMPATIBLE]).with_ages(day(days));
    assert!(at(20_743 + 90).to_string().contains("2026-10-17 (90 days)"));
    assert_eq!(at(20_743 + 90).warning(), None);
    let warning = at(20_743 + 91).warning().unwrap();
    assert_eq!(
        warning,
        "1 of 1 built-in quotas are older than 90 days (openrouter); check them at their sources, or \
         set the quotas of your account"
    );
    assert_eq!(QuotaTable::of(&[OPENROUTER]).warning(), None, "a table without ages");
    let json = serde_json::to_value(at(20_743 + 91)).unwrap();
    assert_eq!(json[0]["quotas"][0]["age_days"], json!(91));
}

#[test]
fn every_profile_and_built_in_quota_has_a_row() {
    let text = QuotaTable::of(Profile::all()).to_string();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    let expected = Profile::all().iter().flat_map(|profile| {
        let patterns: Vec<_> = profile.quotas().iter().map(|quota| quota.pattern).collect();
        let patterns = if patterns.is_empty() { vec!["none"] } else { patterns };
        patterns.into_iter().map(|pattern| vec![profile.name(), pattern])
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

#[test]
fn table_serializes_to_json() {
    let custom = OPENAI.like("my-vllm", "http://gpu-7:8000").unwrap();
    let table = QuotaTable::of(&[OPENROUTER, custom]);
    assert_eq!(
        serde_json::to_value(&table).unwrap(),
        json!([
            {
                "provider": "openrouter",
                "algorithm": "sliding_window",
                "tier": "an account that has bought less than 10 credits",
                "quotas": [{
                    "pattern": "*/*:free",
                    "as_of": "2026-10-17",
                    "source": "https://openrouter.ai/docs/api-reference/limits",
                    "limits": {"rpm": 20, "rpd": 50, "zone": "UTC", "shared": true},
                }],
            },
            {
                "provider": "my-vllm",
                "like": "openai",
                "base_url": "http://gpu-7:8000",
                "algorithm": "token_bucket",
                "quotas": [],
            },
        ]),
    );
}

#[test]
fn table_without_providers_is_empty() {
    let table = QuotaTable::of(&[]);
    assert_eq!(table.to_string(), "");
    assert_eq!(serde_json::to_value(&table).unwrap(), Value::Array(Vec::new()));
}

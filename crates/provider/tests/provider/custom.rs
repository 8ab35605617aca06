//! Custom profiles: like a built-in one, with a separate name and base URL.

use std::time::Duration;

use paceline_limiter::limiter::{LimitRules, Limiter, ManualClock};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Margin, Quota, UnknownZone, Usage};
use paceline_provider::{
    ANTHROPIC, COMPATIBLE, GEMINI, InvalidProfile, OPENAI, Profile, UnknownProvider, VLLM,
};

#[test]
fn like_profile_reads_and_charges_as_base() {
    let body = br#"{"model":"m","max_tokens":100,"messages":[{"content":"How are you?"}]}"#;
    let usage =
        Usage { input: 1_000, output: 50, cache_read: 600, cache_write: 100, long_cache_write: 0 };
    let reserved = Cost::new().tokens(500).input_tokens(400).output_tokens(100);
    for &built_in in Profile::all() {
        let custom = built_in.like("mine", "http://gpu-7:8000").unwrap();
        let cost = |profile: Profile| profile.read_request("/v1/chat/completions", body).cost;
        assert_eq!(cost(custom), cost(built_in));
        assert_eq!(custom.charge(&reserved, &usage), built_in.charge(&reserved, &usage));
        assert_eq!(custom.algorithm(), built_in.algorithm());
        assert_eq!(custom.settles(&Dimension::Tokens), built_in.settles(&Dimension::Tokens));
        assert_eq!((custom.built_in(), built_in.built_in()), (built_in, built_in));
    }
}

#[test]
fn like_profile_has_own_name_and_no_default_quotas() {
    let custom = OPENAI.like("My-vLLM_2.0", "HTTP://gpu-7:8000/v1/").unwrap();
    assert_eq!(custom.name(), "My-vLLM_2.0");
    assert_eq!(custom.base_url(), Some("http://gpu-7:8000/v1"));
    assert!(custom.quotas().is_empty() && !OPENAI.quotas().is_empty());
    assert_eq!(OPENAI.base_url(), None);
    let debug = r#"Profile("My-vLLM_2.0", like "openai", "http://gpu-7:8000/v1")"#;
    assert_eq!(format!("{custom:?}"), debug);
}

#[test]
fn like_profile_with_same_name_keeps_default_quotas() {
    let moved = OPENAI.like("OpenAI", "http://proxy:8080/openai").unwrap();
    assert_eq!((moved.name(), moved.built_in()), ("openai", OPENAI));
    assert_eq!(moved.quotas().len(), OPENAI.quotas().len());
    assert_eq!(Profile::find_among(&[moved], "http://proxy:8080/openai/v1/responses"), moved);
    assert_eq!(
        Profile::named_among(&[moved], "openai"),
        Ok(moved),
        "the custom profile takes precedence"
    );
    assert_ne!(moved, OPENAI);
}

#[test]
fn like_profile_without_base_url_is_found_by_name() {
    let custom = [ANTHROPIC.like("mine", None).unwrap()];
    assert_eq!((custom[0].base_url(), custom[0] == ANTHROPIC), (None, false));
    assert_eq!(Profile::find_among(&custom, "http://gateway/mine/v1/responses"), custom[0]);
    assert_eq!(Profile::find_among(&custom, "http://gateway/v1/responses"), COMPATIBLE);
    assert_eq!(format!("{:?}", custom[0]), r#"Profile("mine", like "anthropic")"#);
}

#[test]
fn profiles_are_equal_by_rules_name_and_base_url() {
    let custom = OPENAI.like("mine", "http://gpu-7:8000").unwrap();
    assert_eq!(custom, OPENAI.like("mine", "http://gpu-7:8000/").unwrap());
    for other in [
        OPENAI,
        OPENAI.like("ours", "http://gpu-7:8000").unwrap(),
        OPENAI.like("mine", "http://gpu-8:8000").unwrap(),
        ANTHROPIC.like("mine", "http://gpu-7:8000").unwrap(),
    ] {
        assert_ne!(custom, other);
    }
}

#[test]
fn like_with_same_arguments_is_kept_once() {
    let again = || OPENAI.like("read-again", "http://gpu-7:8000").unwrap();
    let first = again();
    for other in ["a", "b", "c"] {
        VLLM.like(other, "http://gpu-7:8000").unwrap();
        assert!(core::ptr::eq(first.name(), again().name()), "the same string");
    }
}

#[test]
fn like_in_several_threads_is_kept_once() {
    let make = || OPENAI.like("at-once", "http://gpu-7:8000").unwrap().name().as_ptr() as usize;
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(made.iter().all(|at| *at == made[0]), "{made:?}");
}

#[test]
fn url_below_base_url_finds_the_profile() {
    let custom = [
        OPENAI.like("whole", "http://gpu-7:8000").unwrap(),
        ANTHROPIC.like("part", "http://gpu-7:8000/claude").unwrap(),
        GEMINI.like("tls", "https://llm.example.com/v1").unwrap(),
        VLLM.like("six", "http://[::1]:9000").unwrap(),
        VLLM.like("six-too", "http://[::2]").unwrap(),
        OPENAI.like("proxy", "https://api.openai.com/second").unwrap(),
    ];
    for (url, name) in [
        ("http://gpu-7:8000", "whole"),
        ("http://GPU-7:8000/v1/chat/completions?x=y", "whole"),
        ("gpu-7:8000/v1", "whole"),
        // Provider-specific paths do not override the base URL.
        ("http://gpu-7:8000/v1/messages", "whole"),
        ("http://gpu-7:8000/claude/v1/messages", "part"),
        ("http://gpu-7:8000/claudette/v1", "whole"),
        ("https://llm.example.com:443/v1/models", "tls"),
        ("https://llm.example.com/v2/models", "compatible"),
        ("http://llm.example.com:8443/v1/models", "compatible"),
        ("http://[::1]:9000/v1", "six"),
        ("http://[::1]:9001/v1", "compatible"),
        ("http://[::2]:80/v1", "six-too"),
        ("http://gpu-7/v1", "compatible"),
        ("http://gpu-7:80001/v1", "compatible"),
        ("https://api.openai.com/second/v1/responses", "proxy"),
        ("https://api.openai.com/v1/responses", "openai"),
        // Behind a gateway.
        ("http://gateway:8080/Part/v1/models", "part"),
        ("http://gateway:8080/groq/openai/v1/models", "groq"),
    ] {
        assert_eq!(Profile::find_among(&custom, url).name(), name, "{url}");
    }
    assert_eq!(Profile::find("http://gpu-7:8000"), COMPATIBLE, "custom profiles are ignored");
}

#[test]
fn first_of_two_profiles_at_one_base_url_is_found() {
    let at = |name| OPENAI.like(name, "http://gpu-7:8000").unwrap();
    let both = [at("first"), at("second")];
    assert_eq!(Profile::find_among(&both, "http://gpu-7:8000/v1"), both[0]);
}

/// Rules of a program's own, with a mode.
#[derive(Debug)]
struct Acme;

impl LimitRules for Acme {
    fn name(&self) -> &'static str {
        "acme"
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::TokenBucket
    }

    fn modes(&self) -> Vec<&'static str> {
        vec!["fast"]
    }

    fn default_quotas(&self) -> Result<Vec<(&'static str, Quota)>, UnknownZone> {
        Ok(vec![("acme-large*", Quota::new().rpm(60))])
    }
}

#[test]
fn limiter_uses_rules_that_are_no_profile() {
    let clock = ManualClock::default();
    let builder = Limiter::builder().margin(Margin::NONE).clock(clock.clone());
    let builder = builder.provider(Acme).provider(OPENAI).quota("house", Quota::new().rpm(60));
    let limiter = builder.build().unwrap();
    let rules = limiter.quotas().rules_of("acme-large-2").unwrap();
    assert_eq!((rules.name(), Profile::of_rules(&*rules)), ("acme", None));
    // A mode has limits of its own, like those of its model; another suffix is another key.
    let limits = |key: &str| limiter.quotas().of(key).limits().len();
    assert_eq!(["acme-large-2", "house", "house:fast", "house:slow"].map(limits), [1, 1, 1, 0]);
    let admitted = || limiter.try_acquire("acme-large-2", &Cost::new()).is_ok();
    assert!((0..60).all(|_| admitted()));
    assert!(!admitted());
    // A bucket refills, where a window would stay full.
    clock.advance(Duration::from_secs(1));
    assert_eq!((admitted(), admitted()), (true, false));
}

#[test]
fn limiter_uses_algorithm_of_like_profile() {
    let limits = |profile| {
        let quota = Quota::new().rpm(60).tpm(1_000);
        let limiter = Limiter::builder().provider(profile).quota("llama", quota).build().unwrap();
        (
            limiter.quotas().rules_of("llama").and_then(|rules| Profile::of_rules(&*rules)),
            limiter.quotas().of("llama"),
            limiter.stats("gpt-4o").limits.len(),
        )
    };
    let custom = OPENAI.like("mine", "http://gpu-7:8000").unwrap();
    let (profile, quota, defaults) = limits(custom);
    assert_eq!((profile, defaults), (Some(custom), 0));
    assert_eq!(quota, limits(OPENAI).1);
    assert_ne!(profile, limits(OPENAI).0);
}

#[test]
fn taken_or_invalid_profile_name_is_refused() {
    let refused = |name: &str| OPENAI.like(name, "http://gpu-7:8000").unwrap_err().to_string();
    assert_eq!(
        refused("Anthropic"),
        "provider name `anthropic`: a built-in provider has it; use another name"
    );
    for name in ["", "a b", "a/b", "a:b", "ä", "a\nb", &"x".repeat(65)] {
        let error = refused(name);
        assert!(error.contains("use 1 to 64 letters, digits, `-`, `_` and `.`"), "{error}");
        assert!(!error.contains('\n'));
    }
    assert!(OPENAI.like(&"x".repeat(64), "http://gpu-7:8000").is_ok());
}

#[test]
fn invalid_base_url_is_refused_without_secrets() {
    for (base_url, reason) in [
        ("", "is not a URL"),
        ("gpu-7", "has no scheme"),
        ("gpu-7:8000", "has no scheme"),
        ("/v1", "has no scheme"),
        ("ftp://gpu-7", "is neither http nor https"),
        ("http://", "is not a URL"),
        ("http://gpu 7", "is not a URL"),
        ("http://me:hunter2@gpu-7:8000", "holds a user name"),
        ("http://gpu-7:8000?key=hunter2", "has a query or fragment"),
        ("http://gpu-7:8000#hunter2", "has a query or fragment"),
    ] {
        let error = OPENAI.like("mine", base_url).unwrap_err();
        assert!(matches!(error, InvalidProfile::BaseUrl { .. }), "{base_url}: {error:?}");
        assert!(error.to_string().contains(reason), "{base_url}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{base_url}: {error}");
    }
}

#[test]
fn profile_names_are_found_among_custom_and_built_in() {
    let custom = [OPENAI.like("my-vllm", "http://gpu-7:8000").unwrap()];
    assert_eq!(Profile::named_among(&custom, "MY-VLLM"), Ok(custom[0]));
    assert_eq!(Profile::named_among(&custom, "Gemini"), Ok(GEMINI));
    assert_eq!(Profile::named("my-vllm"), None);
    assert_eq!("OpenAI".parse(), Ok(OPENAI));
}

#[test]
fn unknown_name_is_refused_with_known_names() {
    let custom = [OPENAI.like("my-vllm", "http://gpu-7:8000").unwrap()];
    let unknown = |name: &str| Profile::named_among(&custom, name).unwrap_err();
    let error = unknown("open-ai").to_string();
    let start =
        "unknown provider `open-ai`; did you mean `openai`? known providers: my-vllm, openai, az";
    assert!(error.starts_with(start), "{error}");
    for (name, similar) in [
        ("my-vlm", Some("my-vllm")),
        ("antropic", Some("anthropic")),
        ("llamacpp", Some("llama-cpp")),
        ("Open Router", Some("openrouter")),
        ("claude", None),
        ("acme", None),
        ("", None),
    ] {
        assert_eq!(unknown(name).similar, similar, "{name}");
    }
    let error: UnknownProvider = "acme\n".parse::<Profile>().unwrap_err();
    assert!(
        error.to_string().starts_with("unknown provider `acme\\n`; known providers: openai, azure")
    );
}

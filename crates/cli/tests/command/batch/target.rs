use paceline_cli::batch::target::Base;

#[test]
fn base_url_forms_join_to_correct_url() {
    let table = [
        (
            "https://api.openai.com",
            "/v1/chat/completions",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://api.openai.com/",
            "/v1/chat/completions",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://api.openai.com/v1",
            "/v1/chat/completions",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://api.openai.com/v1/",
            "/v1/chat/completions",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://api.openai.com/v1",
            "/chat/completions",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8080/openai/v1",
            "/v1/chat/completions",
            "http://127.0.0.1:8080/openai/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8080/openai",
            "/v1/embeddings",
            "http://127.0.0.1:8080/openai/v1/embeddings",
        ),
        (
            "https://api.groq.com/openai/v1",
            "/openai/v1/responses",
            "https://api.groq.com/openai/v1/responses",
        ),
        (
            "https://host/v1beta/openai/",
            "/v1/chat/completions",
            "https://host/v1beta/openai/chat/completions",
        ),
        (
            "https://api.z.ai/api/paas/v4",
            "/v1/chat/completions",
            "https://api.z.ai/api/paas/v4/chat/completions",
        ),
        ("https://host/v10", "/v1/chat/completions", "https://host/v10/chat/completions"),
        ("https://host/v1", "/v1/models?api-version=1", "https://host/v1/models?api-version=1"),
        ("https://host/v1", "/v1?x=/v1/y", "https://host/v1/?x=/v1/y"),
        ("https://host/a/a", "/a/a/x", "https://host/a/a/x"),
        ("http://[::1]:9/v1", "/v1/responses", "http://[::1]:9/v1/responses"),
        ("https://host/chatter", "/chat/completions", "https://host/chatter/chat/completions"),
    ];
    for (base, path, url) in table {
        let parsed: Base = base.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed.join(path), url, "{base} + {path}");
    }
}

#[test]
fn openai_endpoints_use_provider_path() {
    let table = [
        ("https://x.openai.azure.com", "/v1/chat/completions", "/openai/v1/chat/completions"),
        ("https://x.openai.azure.com", "/chat/completions", "/openai/v1/chat/completions"),
        ("https://x.openai.azure.com", "/v1/images/generations", "/openai/v1/images/generations"),
        (
            "https://x.openai.azure.com",
            "/v1/embeddings?api-version=preview",
            "/openai/v1/embeddings?api-version=preview",
        ),
        (
            "https://x.openai.azure.com",
            "/openai/deployments/d/chat/completions?api-version=1",
            "/openai/deployments/d/chat/completions?api-version=1",
        ),
        ("https://x.openai.azure.com/openai/v1", "/v1/responses", "/openai/v1/responses"),
        ("https://x.openai.azure.com/mine", "/v1/responses", "/mine/v1/responses"),
        ("https://host", "/v1/models", "/v1/models"),
    ];
    for (base, path, expected) in table {
        let parsed: Base = base.parse().unwrap_or_else(|error| panic!("{error}"));
        let url = parsed.with_openai_at("/openai/v1").join(path);
        let host = base.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        assert_eq!(url, format!("{host}{expected}"), "{base} + {path}");
    }
}

#[test]
fn invalid_base_url_error_shows_reason_and_syntax() {
    let table = [
        ("api.openai.com/v1", "is not a URL"),
        ("api.openai.com", "has no scheme"),
        ("/v1", "has no scheme"),
        ("", "is not a URL"),
        ("ftp://host/v1", "is neither http nor https"),
        ("https://host/v1?key=1", "has a query or fragment"),
        ("https://host/v1#top", "has a query or fragment"),
    ];
    for (base, reason) in table {
        let error = base.parse::<Base>().expect_err(base);
        assert_eq!(error.reason, reason, "{base}");
        assert!(error.to_string().contains("write it as https://api.openai.com/v1"), "{error}");
    }
}

#[test]
fn base_url_error_omits_password_and_key() {
    for base in ["https://me:s3cret@host/v1", "https://host/v1?key=s3cret", "ftp://s3cret@host"] {
        let error = base.parse::<Base>().expect_err(base);
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}

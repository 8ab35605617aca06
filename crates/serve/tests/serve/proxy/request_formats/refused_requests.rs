use super::test_request::{
    CHAT, JSON, TestRequest, chat, field, file, form, gemini, gzip, part, test_request, utf16,
    utf32,
};

/// Requests that two servers may interpret differently, or that the proxy cannot read: all are refused.
pub(super) fn refused_requests() -> Vec<(TestRequest, &'static str)> {
    let free = r#"{"model": "free"}"#;
    let model = "`model`";
    let bodies: [(&str, &str); 36] = [
        (r#"{"model": "free", "model": "gpt-4o"}"#, model),
        (r#"{"model": "gpt-4o", "model": "free"}"#, model),
        (r#"{"model": "free", "model_id": "gpt-4o"}"#, model),
        (r#"{"model_id": "free", "model": "gpt-4o"}"#, model),
        (r#"{"model": "free", "mod\u0065l": "gpt-4o"}"#, model),
        (r#"{"model": "free", "Model": "gpt-4o"}"#, model),
        (r#"{"MODEL": "gpt-4o", "model": "free"}"#, model),
        (r#"{"model": "free", "model\u0000": "gpt-4o"}"#, model),
        (r#"{"model": "free", " model": "gpt-4o"}"#, model),
        (r#"{"model": "free", "model": null}"#, model),
        (r#"{"model": null, "model": "free"}"#, model),
        (r#"{"model": "free", "model": 7}"#, model),
        (r#"{"model": ["gpt-4o"]}"#, model),
        (r#"{"model": {"id": "gpt-4o"}}"#, model),
        (r#"{"model": 4}"#, model),
        (r#"{"model": -4}"#, model),
        (r#"{"model": true}"#, model),
        (r#"{"options": {"model": "gpt-4o"}}"#, model),
        (r#"{"generationConfig": {"model": "gpt-4o"}}"#, model),
        (r#"{"toolConfig": {"model_id": "gpt-4o"}}"#, model),
        (r#"{"top_p": NaN, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": Infinity, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": -Infinity, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": 01, "model": "gpt-4o"}"#, "`body`"),
        (r#"{"top_p": .5, "model": "gpt-4o"}"#, "`body`"),
        (r#"{/* a */ "model": "gpt-4o"}"#, "`body`"),
        (r#"{"stop": ["\ud83d"], "a": undefined, "model": "gpt-4o"}"#, "`body`"),
        (r#"{'model': 'gpt-4o'}"#, "`body`"),
        (r#"{model: "gpt-4o"}"#, "`body`"),
        (r#"{"model": "gpt-4o",}"#, "`body`"),
        (r#"{"model": "gpt-4o""#, "`body`"),
        (r#"{"model": "free"} {"model": "gpt-4o"}"#, "`body`"),
        (r#"[{"model": "gpt-4o"}]"#, "`body`"),
        (r#""{\"model\": \"gpt-4o\"}""#, "`body`"),
        ("model=gpt-4o", "`body`"),
        ("null", "`body`"),
    ];
    let mut requests: Vec<(TestRequest, &str)> =
        bodies.into_iter().map(|(body, field)| (chat(body), field)).collect();
    for (mark, big) in [(false, false), (false, true), (true, false), (true, true)] {
        requests.push((chat(utf16(CHAT, mark, big)), "`body`"));
        requests.push((chat(utf32(CHAT, mark, big)), "`body`"));
    }
    requests.push((chat([CHAT.as_bytes(), b"\0"].concat()), "`body`"));
    requests.push((chat([&b"{\"a\": \"\xff\", \"model\": \"gpt-4o\"}"[..]].concat()), "`body`"));
    requests.push((chat(gzip(CHAT)), "`body`"));
    requests.push((chat(format!("{}1{}", "[".repeat(300), "]".repeat(300))), "`body`"));
    let deep =
        format!(r#"{{"messages": {}{}, "model": "gpt-4o"}}"#, "[".repeat(300), "]".repeat(300));
    requests.push((chat(deep), "`body`"));
    for encoding in ["br", "deflate", "zstd", "compress", "identity, gzip"] {
        let fields = format!("{JSON}content-encoding: {encoding}\r\n");
        requests.push((
            test_request("POST", "/v1/chat/completions", &fields, gzip(CHAT)),
            "content-encoding",
        ));
        requests.push((
            test_request("PUT", "/v1/chat/completions", &fields, gzip(CHAT)),
            "content-encoding",
        ));
    }
    let kind = "`content-type`";
    for fields in [
        "content-type: application/json; charset=utf-16\r\n",
        "content-type: application/json; charset=\"UTF-7\"\r\n",
        "content-type: application/json\r\ncontent-type: application/x-www-form-urlencoded\r\n",
    ] {
        requests.push((test_request("POST", "/v1/chat/completions", fields, free), kind));
    }
    // Form pairs inside JSON.
    let fields = "content-type: application/x-www-form-urlencoded\r\n";
    let both = r#"{"model": "free", "a": "&model=gpt-4o&"}"#;
    requests.push((test_request("POST", "/v1/chat/completions", fields, both), model));
    requests.push((
        test_request("POST", "/v1/chat/completions", fields, "model=free&model=gpt-4o"),
        model,
    ));
    requests.push((
        test_request("POST", "/v1/chat/completions", fields, "model=free;model=gpt-4o"),
        model,
    ));
    requests.push((
        test_request("POST", "/v1/chat/completions", fields, "model=free&model=%ff"),
        model,
    ));

    let transcribe = "/v1/audio/transcriptions";
    let (one, other) = (field("model", "free"), field("model", "gpt-4o"));
    let lines = format!("{one}{other}--B--\r\n").replace("\r\n", "\n");
    let of_model = |rest: &str, value: &str| {
        let head = format!("Content-Disposition: form-data; {rest}");
        one.clone() + &part(&head, value) + "--B--\r\n"
    };
    let forms = [
        (format!("{one}{other}--B--\r\n"), model),
        (of_model("name=\"model\"; filename=\"a\"", "gpt-4o"), model),
        (of_model("name=\"Model\"", "gpt-4o"), model),
        (of_model("name=\"mo\\del\"", "gpt-4o"), model),
        (of_model("name=\"m%6Fdel\"", "gpt-4o"), model),
        (of_model("name=model", "gpt-4o"), model),
        (of_model("name=\"model\"\r\nContent-Transfer-Encoding: base64", "Z3B0LTRv"), model),
        (of_model("name=\"model[]\"", "gpt-4o"), model),
        (of_model("name*=utf-8''model", "gpt-4o"), "`body`"),
        (of_model("name=a; name=model", "gpt-4o"), "`body`"),
        (of_model("\r\n name=model", "gpt-4o"), "`body`"),
        (field("model", &"x".repeat(300)) + "--B--\r\n", model),
        (format!("{one}--B--\r\n{other}--B--\r\n"), "`body`"),
        (format!("model=free\r\n{other}--B--\r\n"), "`body`"),
        (format!("{free}\r\n{other}--B--\r\n"), "`body`"),
        (one.clone() + &file("x"), "`body`"),
        (one.clone() + &file(&"x".repeat(200_000)), "`body`"),
        (lines, "`body`"),
        (format!("{}{other}--B--\r\n", one.replace("\r\n", "\n")), "`body`"),
        (
            format!("{one}--B x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--"),
            "`body`",
        ),
        (format!("{one}--B\r\nno header\r\n\r\n1\r\n--B--\r\n"), "`body`"),
        (format!("{one}--B\r\nContent-Disposition: form-data; name=model"), "`body`"),
    ];
    requests.extend(forms.map(|(body, field)| (form(transcribe, &body), field)));
    let whole = format!("{one}--B--\r\n");
    for fields in [
        "content-type: multipart/form-data\r\n",
        "content-type: multipart/form-data; boundary=C\r\n",
        "content-type: multipart/form-data; boundary=B; boundary=C\r\n",
        "content-type: multipart/mixed; boundary=B\r\n",
        "content-type: audio/wav\r\n",
        JSON,
        "",
    ] {
        let request = test_request("POST", transcribe, fields, &whole);
        requests.push((request, if fields.contains("form-data") { kind } else { "`body`" }));
    }
    for path in [
        "/v1beta/models/gpt%252D4o:generateContent",
        "/v1beta/models/gpt-4o%20:generateContent",
        "/v1beta/models/gpt-4o%00:generateContent",
        "/v1beta/models/gpt-4o;a=b:generateContent",
        "/v1beta/models/gpt-4o%3Ba=b:generateContent",
        "/v1beta/models%5Cgpt-4o:generateContent",
        "/v1beta/models/gpt-4o%23:generateContent",
        "/v1beta/models/gpt-4o%3F:generateContent",
        "/v1beta/models/gpt-4o%FF:generateContent",
        "/v1beta/models/gpt-4o%zz:generateContent",
        "/v1beta/models/gpt-4o:generateContent%09",
    ] {
        requests.push((gemini(path), "path"));
    }
    for path in [
        "/v1beta/./models/gpt-4o:generateContent",
        "/v1beta/models/../models/gpt-4o:generateContent",
        "/v1beta/models/free/%2e%2e/gpt-4o:generateContent",
        "/v1beta/models/free%2F..%2fgpt-4o:generateContent",
        "/v1beta/models/free/%252e%252e/gpt-4o:generateContent",
        "/v1/files/../chat/completions",
    ] {
        requests.push((gemini(path), "path"));
    }
    requests
}

use super::test_request::{
    CHAT, JSON, TestRequest, chat, field, file, form, gemini, of, part, test_request,
};

/// Readable requests for `gpt-4o`: five are admitted, further ones exceed the limit.
pub(super) fn charged_requests() -> Vec<TestRequest> {
    let bodies = [
        CHAT,
        // A nested object does not set the model, whether before or after it.
        r#"{"model": "gpt-4o", "options": {"model": "free"}}"#,
        r#"{"options": {"model": "free"}, "model": "gpt-4o"}"#,
        r#"{"model": "gpt-4o", "generationConfig": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "generation_config": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "toolConfig": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "inferenceConfig": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "textGenerationConfig": {"model_id": "free"}}"#,
        r#"{"model": "gpt-4o", "singleEmbeddingParams": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "options": {"options": {"model": "free"}}}"#,
        r#"{"model": "gpt-4o", "options": {"model_id": "free"}}"#,
        r#"{"model": "gpt-4o", "metadata": {"model": "free"}}"#,
        r#"{"model": "gpt-4o", "messages": [{"model": "free", "content": "x"}]}"#,
        r#"{"model": "gpt-4o", "messages": [{"content": "{\"model\": \"free\"}"}]}"#,
        // The same model twice is unambiguous.
        r#"{"model": "gpt-4o", "model": "gpt-4o"}"#,
        r#"{"model": "gpt-4o", "model_id": "gpt-4o"}"#,
        r#"{"model_id": "gpt-4o"}"#,
        r#"{"model": "models/gpt-4o"}"#,
        r#"{"Model": "gpt-4o"}"#,
        r#"{"MODEL": "gpt-4o", "model": "gpt-4o"}"#,
        // Escapes are decoded.
        r#"{"mod\u0065l": "gpt-4o"}"#,
        r#"{"model": "\u0067pt-4o"}"#,
        // Half of a surrogate pair, as in a text cut in the middle of an emoji.
        r#"{"messages": [{"content": "a\ud83d"}], "model": "gpt-4o"}"#,
        // Other unusual fields.
        r#"{"stream": "yes", "n": -1, "messages": 7, "model": "gpt-4o"}"#,
        r#"{"messages": [], "messages": [], "model": "gpt-4o"}"#,
        r#"{"top_p": 1e999, "model": "gpt-4o"}"#,
        r#"{"model": " gpt-4o "}"#,
        "\u{feff}{\"model\": \"gpt-4o\"}",
        " \r\n\t{\"model\": \"gpt-4o\"}\n\n",
    ];
    let mut requests: Vec<TestRequest> = bodies.into_iter().map(chat).collect();
    requests.extend(
        ["PUT", "PATCH", "QUERY", "post", "Post", "PROPFIND", "put", "get", "X"]
            .map(|method| test_request(method, "/v1/chat/completions", JSON, CHAT)),
    );
    // A server may treat these like a POST.
    requests.extend(["GET", "DELETE", "OPTIONS"].map(|method| {
        let fields = format!("{JSON}x-http-method-override: POST\r\n");
        test_request(method, "/v1/chat/completions", &fields, CHAT)
    }));
    requests.extend(
        [
            "//v1//chat/completions",
            "/v1/chat//completions",
            "/v1/chat/completions/",
            "/v1/chat/completions//",
            "/v1/chat/completions?model=free",
            "/v1/chat/completions?path=/v1/files",
            "/V1/Chat/Completions",
            "/v1/ch%61t/completions",
            "/v1%2Fchat%2Fcompletions",
            "/v1/files/chat/completions",
            "/",
            "",
        ]
        .map(|path| test_request("POST", path, JSON, CHAT)),
    );
    requests.extend(
        [
            "/v1beta/models/gpt-4o:generateContent",
            "/v1beta/models//gpt-4o:generateContent",
            "//v1beta//models//gpt-4o:generateContent",
            "/v1beta/models/gpt-4o:generateContent/",
            "/v1beta/models%2Fgpt-4o:generateContent",
            "/v1beta/models%2fgpt-4o%3AgenerateContent",
            "/v1beta/Models/gpt-4o:generateContent",
            "/v1beta/models/gpt-4o:GenerateContent",
            "/v1beta/models/gpt%2D4o:generateContent?alt=sse",
            "/v1/projects/p/locations/l/publishers/google/models/gpt-4o:streamGenerateContent",
        ]
        .map(gemini),
    );
    let of_path = r#"{"model": "free", "messages": []}"#;
    requests.extend(
        [
            "/openai/deployments/gpt-4o/chat/completions",
            "/openai/deployments//gpt-4o/chat/completions",
            "/openai/Deployments/gpt-4o/chat/completions",
            "/openai/deployments%2Fgpt-4o/chat/completions",
        ]
        .map(|path| of("azure", test_request("POST", path, JSON, of_path))),
    );
    requests.extend(
        ["/model/gpt-4o/converse", "//model//gpt-4o/invoke", "/Model/gpt%2D4o/converse-stream"]
            .map(|path| of("bedrock", test_request("POST", path, JSON, of_path))),
    );
    // Form fields in any order.
    let far = "x".repeat(200_000);
    let forms = [
        field("model", "gpt-4o") + &file("RIFF") + "--B--\r\n",
        file(&far) + &field("model", "gpt-4o") + &file(&far) + "--B--\r\n",
        file(&far) + &part("CONTENT-DISPOSITION:form-data;name=model", "gpt-4o") + "--B--",
        field("model", "gpt-4o") + &file("x\r\nname=\"model\"\r\n\r\nfree\r\n") + "--B--\r\n",
        file("\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nfree\r\n")
            + &field("model", "gpt-4o")
            + "--B--\r\n",
        part(&format!("x-pad: {far}\r\nContent-Disposition: form-data; name=\"model\""), "gpt-4o")
            + "--B--\r\n",
        field("m%6fdel", "gpt-4o") + "--B--\r\n",
        "\r\n".to_owned() + &field("model", "gpt-4o") + "--B--\r\n",
    ];
    requests.extend(forms.map(|body| form("/v1/audio/transcriptions", &body)));
    let pairs = [
        "model=gpt-4o&file=x",
        "file=x&m%6Fdel=gpt%2D4o",
        "a=b;model=gpt-4o",
        "model=gpt-4o+",
        "+model=gpt-4o",
    ];
    let fields = "content-type: application/x-www-form-urlencoded\r\n";
    requests.extend(pairs.map(|body| test_request("POST", "/v1/audio/speech", fields, body)));
    // `curl -d` sends this content type for JSON, too.
    requests.push(test_request("POST", "/v1/chat/completions", fields, CHAT));
    requests.push(test_request("POST", "/v1/chat/completions", "", CHAT));
    requests.push(test_request(
        "POST",
        "/v1/chat/completions",
        "content-type: text/plain\r\n",
        CHAT,
    ));
    requests
}

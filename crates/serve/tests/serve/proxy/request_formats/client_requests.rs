use super::test_request::{CHAT, JSON, TestRequest, gzip, of, test_request, utf16};

/// Requests in the form that real clients send.
pub(super) fn client_requests() -> Vec<TestRequest> {
    let hi = r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let contents = r#"{"contents": [{"parts": [{"text": "Hi"}]}]}"#;
    let batch = r#"{"requests": [{"model": "models/a", "content": {}}, {"model": "models/b"}]}"#;
    let converse =
        r#"{"messages": [], "inferenceConfig": {"maxTokens": 9}, "toolConfig": {"tools": []}}"#;
    let invoke = r#"{"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}"#;
    let json = [
        ("openai", "/v1/chat/completions", hi),
        (
            "openai",
            "/v1/chat/completions",
            r#"{"model": "m", "messages": [], "metadata": {"model": "x"}}"#,
        ),
        ("openai", "/v1/completions", r#"{"model": "m", "prompt": ["a", "b"], "n": 2}"#),
        (
            "openai",
            "/v1/responses",
            r#"{"model": "m", "input": "Hi", "tools": [{"type": "web_search"}]}"#,
        ),
        ("openai", "/v1/responses", r#"{"prompt": {"id": "pmpt_1"}, "input": "no model"}"#),
        ("openai", "/v1/responses/resp_1/cancel", ""),
        ("openai", "/v1/embeddings", r#"{"model": "m", "input": [[1, 2], [3]]}"#),
        ("openai", "/v1/moderations", r#"{"input": "no model"}"#),
        ("openai", "/v1/moderations", r#"{"model": null, "input": "no model"}"#),
        ("openai", "/v1/images/generations", r#"{"model": "m", "prompt": "a cat", "n": 1}"#),
        ("openai", "/v1/audio/speech", r#"{"model": "m", "input": "Hi", "voice": "alloy"}"#),
        ("openai", "/v1/batches", r#"{"input_file_id": "file-1", "endpoint": "/v1/embeddings"}"#),
        ("openai", "/v1/fine_tuning/jobs", r#"{"model": "m", "training_file": "file-1"}"#),
        ("openai", "/v1/threads/t/runs", r#"{"assistant_id": "asst_1"}"#),
        ("openai", "/v1/vector_stores", "{}"),
        (
            "anthropic",
            "/v1/messages",
            r#"{"model": "m", "max_tokens": 9, "messages": [], "system": "x"}"#,
        ),
        (
            "anthropic",
            "/v1/messages?beta=true",
            r#"{"model": "m", "max_tokens": 9, "messages": []}"#,
        ),
        ("anthropic", "/v1/messages/count_tokens", hi),
        (
            "anthropic",
            "/v1/messages/batches",
            r#"{"requests": [{"custom_id": "a", "params": {"model": "m"}}]}"#,
        ),
        ("gemini", "/v1beta/models/gemini-x:generateContent", contents),
        ("gemini", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", contents),
        ("gemini", "/v1beta/models/gemini-x:batchEmbedContents", batch),
        ("gemini", "/v1beta/models/gemini-x%3AgenerateContent", contents),
        ("gemini", "/v1beta/cachedContents", r#"{"model": "models/m", "contents": []}"#),
        ("gemini", "/v1beta/openai/chat/completions", hi),
        (
            "vertex",
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
            contents,
        ),
        (
            "vertex-anthropic",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
            invoke,
        ),
        ("azure", "/openai/deployments/d/chat/completions?api-version=2024-10-21", hi),
        ("azure", "/openai/deployments/d/chat/completions", r#"{"messages": []}"#),
        ("azure", "/openai/v1/responses", r#"{"model": "m", "input": "Hi"}"#),
        ("bedrock", "/model/us.amazon.nova-micro-v1%3A0/converse", converse),
        (
            "bedrock",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fp/invoke",
            invoke,
        ),
        (
            "bedrock",
            "/model/amazon.titan-text/invoke",
            r#"{"inputText": "Hi", "textGenerationConfig": {}}"#,
        ),
        ("cohere", "/v2/chat", hi),
        ("cohere", "/v1/chat", r#"{"message": "no model", "chat_history": []}"#),
        ("cohere", "/v2/embed", r#"{"model": "m", "texts": ["a"], "input_type": "search_query"}"#),
        ("cohere", "/v2/rerank", r#"{"model": "m", "query": "a", "documents": ["b"]}"#),
        (
            "ollama",
            "/api/chat",
            r#"{"model": "llama3:8b", "messages": [], "options": {"num_predict": 9}}"#,
        ),
        (
            "ollama",
            "/api/generate",
            r#"{"model": "llama3", "prompt": "Hi", "options": {"temperature": 0}}"#,
        ),
        ("ollama", "/api/pull", r#"{"model": "llama3"}"#),
        ("mistral", "/v1/chat/completions", hi),
        (
            "mistral",
            "/v1/ocr",
            r#"{"model": "m", "document": {"type": "document_url", "document_url": "u"}}"#,
        ),
        ("groq", "/openai/v1/chat/completions", hi),
        ("openrouter", "/api/v1/chat/completions", r#"{"models": ["a", "b"], "messages": []}"#),
        ("huggingface", "/v1/chat/completions", hi),
        ("voyage", "/v1/embeddings", r#"{"model": "m", "input": "Hi"}"#),
        ("llama-cpp", "/completion", r#"{"prompt": "no model", "n_predict": 9}"#),
        ("compatible", "/models/owner/name/predictions", r#"{"input": {"prompt": "Hi"}}"#),
        ("compatible", "/serving-endpoints/e/invocations", r#"{"messages": []}"#),
    ];
    let mut requests: Vec<TestRequest> = json
        .map(|(provider, path, body)| of(provider, test_request("POST", path, JSON, body)))
        .into();
    for fields in [
        "",
        "content-type: application/json; charset=utf-8\r\n",
        "content-type: application/json;charset=UTF-8\r\n",
        "content-type: text/plain; charset=\"us-ascii\"\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
        "content-type: application/json\r\ncontent-encoding: identity\r\n",
    ] {
        requests.push(test_request("POST", "/v1/chat/completions", fields, hi));
    }
    // Forms as written by curl, httpx, Go, OkHttp, .NET and aiohttp.
    let head = "Content-Disposition: form-data; name=";
    let audio = "\0RIFF\r\n--\r\n\u{ff}\n\n";
    let forms = [
        ("-----26", format!("\"model\"\r\n\r\nm\r\n-------26\r\n{head}\"file\"; filename=\"a.wav\"\r\n\
            Content-Type: application/octet-stream\r\n\r\n{audio}\r\n-------26--\r\n")),
        ("0f3a", format!("\"file\"; filename=\"a b;c.wav\"\r\nContent-Type: audio/wav\r\n\r\n{audio}\r\n\
            --0f3a\r\n{head}\"model\"\r\n\r\nm\r\n--0f3a--\r\n")),
        ("okhttp", "\"model\"\r\nContent-Length: 1\r\n\r\nm\r\n--okhttp--\r\n".to_owned()),
        ("\"a-b\"", "model\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nm\r\n--a-b\r\n\
            Content-Disposition: form-data; name=file; filename=a.wav; filename*=utf-8''a.wav\r\n\r\n\
            x\r\n--a-b--\r\n".to_owned()),
        ("z", format!("\"image[]\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\nx\r\n--z\r\n\
            {head}\"image[]\"; filename=\"b.png\"\r\nContent-Type: image/png\r\n\r\ny\r\n--z\r\n\
            {head}\"prompt\"\r\n\r\nno model\r\n--z--\r\n")),
    ];
    for (boundary, body) in forms {
        let fields = format!("content-type: multipart/form-data; boundary={boundary}\r\n");
        let body = format!("--{}\r\n{head}{body}", boundary.trim_matches('"'));
        let path = if body.contains("\"model\"") || body.contains("=model") {
            "/v1/audio/transcriptions"
        } else {
            "/v1/images/edits"
        };
        requests.push(test_request("POST", path, &fields, &body));
        let path = "/openai/deployments/whisper/audio/transcriptions?api-version=1";
        requests.push(of("azure", test_request("POST", path, &fields, &body)));
        requests.push(test_request("POST", "/v1/files", &fields, &body));
    }
    // Requests without a model.
    let raw = "content-type: application/octet-stream\r\n";
    requests.push(of("ollama", test_request("POST", "/api/blobs/sha256:00", raw, "\0GGUF")));
    requests
        .push(of("gemini", test_request("POST", "/upload/v1beta/files?upload_id=1", raw, "\0")));
    requests.push(test_request("PUT", "/v1/files/file-1", raw, gzip(CHAT)));
    requests.push(test_request("POST", "/v1/uploads/u/parts", raw, utf16(CHAT, true, true)));
    for path in ["/v1/models", "/v1/files/a%20b", "/v1//models/x;y", "/api/tags", ""] {
        requests.push(test_request("GET", path, "", ""));
        requests.push(test_request("DELETE", path, "", ""));
    }
    requests
}

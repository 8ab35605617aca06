//! Small responses in each format of each provider, with expected readings.

use paceline_limiter::quota::Usage;

use paceline_testing::event_stream::{chunk, event, message};

/// A response body.
pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    /// The name of the profile.
    pub(crate) profile: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// Input, output, cache read, cache write.
    pub(crate) usage: Option<[u64; 4]>,
    /// The code, else the type, and the message.
    pub(crate) error: Option<(&'static str, &'static str)>,
}

impl Fixture {
    fn new(
        name: &'static str,
        profile: &'static str,
        content_type: &'static str,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self { name, profile, content_type, body: body.into(), usage: None, error: None }
    }

    fn with_usage(self, usage: [u64; 4]) -> Self {
        Self { usage: Some(usage), ..self }
    }

    fn with_error(self, code: &'static str, message: &'static str) -> Self {
        Self { error: Some((code, message)), ..self }
    }

    pub(crate) fn expected(&self) -> Option<Usage> {
        let usage = |[input, output, cache_read, cache_write]: [u64; 4]| Usage {
            input,
            output,
            cache_read,
            cache_write,
            long_cache_write: 0,
        };
        self.usage.map(usage)
    }
}

pub(crate) fn fixtures() -> Vec<Fixture> {
    [openai(), anthropic(), gemini(), bedrock(), others()].into_iter().flatten().collect()
}

fn openai() -> Vec<Fixture> {
    vec![
        Fixture::new("chat", "openai", JSON, r#"{"id":"x","object":"chat.completion","choices":[{"message":{"role":"assistant","content":"a \"usage\": {\"prompt_tokens\": 1} \u00e9 \\","tool_calls":[{"function":{"name":"f","arguments":"{\"usage\":{\"prompt_tokens\":7}}"}}]},"usage":{"prompt_tokens":8}}],"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":8}}}"#)
            .with_usage([12, 34, 8, 0]),
        Fixture::new("chat stream", "openai", SSE, ": hi\n\ndata: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\": \\\"usage\\\"\"}}],\"usage\":null}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"usage\\\":{\\\"prompt_tokens\\\":9}}\"}}]}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n")
            .with_usage([3, 4, 0, 0]),
        Fixture::new("chat stream with carriage returns", "openai", SSE, "data: {\"choices\":[{}]}\r\n\r\ndata: {\r\n\ndata: {\"usage\":\r\ndata: {\"prompt_tokens\":3,\rdata:\"completion_tokens\":4}}\r\r\ndata: {\"x\":1}\n\r\ndata: {}\r\n\r\n")
            .with_usage([3, 4, 0, 0]),
        Fixture::new("responses stream", "openai", SSE, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":null,\"output\":[{\"usage\":{\"input_tokens\":9}}],\"usage\":{\"input_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":1},\"output_tokens\":6}}}\n\n")
            .with_usage([5, 6, 1, 0]),
        Fixture::new("responses error", "azure", SSE, "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}\n\n")
            .with_error("rate_limit_exceeded", "slow"),
        Fixture::new("responses error, nested", "azure", SSE, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"too_many_requests\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}}\n\n")
            .with_error("rate_limit_exceeded", "slow"),
        Fixture::new("responses failed", "openai", SSE, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"sorry \\ud83d\\ude00\"},\"usage\":null}}\n\n")
            .with_error("server_error", "sorry 😀"),
        Fixture::new("error by escapes", "openai", SSE, "data: {\"type\":\"\\u0065rr\\u006fr\",\"code\":\"x\"}\n\n").with_error("x", ""),
        Fixture::new("a type that an unpaired surrogate makes no error", "openai", SSE, "data: {\"type\":\"er\\ud83dror\",\"code\":\"x\"}\n\n"),
        Fixture::new("openrouter error", "openrouter", SSE, ": OPENROUTER PROCESSING\n\ndata: {\"id\":\"g\",\"object\":\"chat.completion.chunk\",\"error\":{\"code\":502,\"message\":\"gone\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n")
            .with_error("502", "gone"),
        Fixture::new("embeddings", "openai", JSON, r#"{"object":"list","data":[{"object":"embedding","embedding":[0.0123456789,-2e-3,0.0123456789,-2e-3,0.0123456789,-2e-3]},{"embedding":"AAAAPwAAgD8/+9j="}],"usage":{"prompt_tokens":9,"total_tokens":9}}"#)
            .with_usage([9, 0, 0, 0]),
    ]
}

fn anthropic() -> Vec<Fixture> {
    const STREAM: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"content\":[],\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":20,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"usage\\\": {\\\"input_tokens\\\": 99}}\"}}\n\n";
    let stream = |end: &str| [STREAM, end].concat();
    vec![
        Fixture::new("message", "anthropic", JSON, r#"{"type":"message","content":[{"type":"tool_use","input":{"usage":{"input_tokens":99,"output_tokens":99},"error":{"message":"x"}}}],"usage":{"input_tokens":5,"cache_creation_input_tokens":100,"cache_read_input_tokens":20,"cache_creation":{"input_tokens":7},"output_tokens":15}}"#)
            .with_usage([125, 15, 20, 100]),
        Fixture::new("message stream", "anthropic", SSE, stream("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":10}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"))
            .with_usage([125, 15, 20, 100]),
        Fixture::new("message stream cut off", "anthropic", SSE, stream("")).with_usage([125, 1, 20, 100]),
        Fixture::new("message error", "anthropic", SSE, stream("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"))
            .with_usage([125, 1, 20, 100])
            .with_error("overloaded_error", "Overloaded"),
    ]
}

fn gemini() -> Vec<Fixture> {
    const FIRST: &str = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"usageMetadata":{"promptTokenCount":99}}}}]}}],"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}"#;
    const LAST: &str = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":4,"thoughtsTokenCount":6,"toolUsePromptTokenCount":3,"cachedContentTokenCount":2,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]}}"#;
    const ERROR: &str =
        r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    vec![
        Fixture::new("generate", "gemini", JSON, LAST).with_usage([13, 10, 2, 0]),
        Fixture::new("generate, an array", "gemini", JSON, format!("[{FIRST},\n{LAST}]\n"))
            .with_usage([13, 10, 2, 0]),
        Fixture::new(
            "generate, events",
            "gemini",
            SSE,
            format!("data: {FIRST}\r\n\r\ndata: {LAST}\r\n\r\n"),
        )
        .with_usage([13, 10, 2, 0]),
        Fixture::new(
            "generate, an error in the array",
            "vertex",
            JSON,
            format!("[{FIRST}\n,\r\n{ERROR}\n]"),
        )
        .with_usage([10, 0, 0, 0])
        .with_error("503", "The model is overloaded."),
    ]
}

fn bedrock() -> Vec<Fixture> {
    let delta = r#"{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"usage\":{\"inputTokens\":99}}"}},"p":"abc"}"#;
    let metadata = r#"{"metrics":{"latencyMs":3950},"trace":{"guardrail":{"usage":{"inputTokens":99}}},"p":"ab","usage":{"inputTokens":210,"outputTokens":18,"cacheReadInputTokens":7,"cacheWriteInputTokens":5,"totalTokens":240}}"#;
    let start =
        r#"{"type":"message_start","message":{"usage":{"input_tokens":16,"output_tokens":1}}}"#;
    let stop = r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":16,"outputTokenCount":21}}"#;
    let throttled = [
        (":exception-type", "throttlingException"),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    let broken = [
        (":message-type", "error"),
        (":error-code", "internalServerError"),
        (":error-message", "try later"),
    ];
    vec![
        Fixture::new(
            "converse stream",
            "bedrock",
            AWS,
            [event("contentBlockDelta", delta), event("metadata", metadata)].concat(),
        )
        .with_usage([222, 18, 7, 5]),
        Fixture::new(
            "invoke stream",
            "bedrock",
            AWS,
            [chunk(start), chunk(r#"{"delta":{"text":"usage"}}"#), chunk(stop)].concat(),
        )
        .with_usage([16, 21, 0, 0]),
        Fixture::new(
            "exception",
            "bedrock",
            AWS,
            [
                event("contentBlockDelta", delta),
                message(&throttled, br#"{"message":"Too many tokens"}"#),
            ]
            .concat(),
        )
        .with_error("throttlingException", "Too many tokens"),
        Fixture::new(
            "error message",
            "bedrock",
            AWS,
            [message(&broken, b""), event("metadata", metadata)].concat(),
        )
        .with_usage([222, 18, 7, 5])
        .with_error("internalServerError", "try later"),
        Fixture::new(
            "an error of the model's maker",
            "bedrock",
            AWS,
            chunk(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        )
        .with_error("overloaded_error", "Overloaded"),
    ]
}

fn others() -> Vec<Fixture> {
    const LINE: &str = "{\"message\":{\"content\":\"usage\",\"tool_calls\":[{\"function\":{\"arguments\":{\"eval_count\":99}}}]},\"done\":false}\n";
    const END: &str = r#"{"event_type":"stream-end","response":{"text":"x","meta":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":3,"output_tokens":4}}}}"#;
    vec![
        Fixture::new("lines", "ollama", NDJSON, [LINE, LINE, "{\"done\":true,\"prompt_eval_count\":31,\"eval_count\":8}\n"].concat())
            .with_usage([31, 8, 0, 0]),
        Fixture::new("an error in lines", "ollama", NDJSON, [LINE, "{\"error\":\"out of memory\"}\n"].concat())
            .with_error("", "out of memory"),
        Fixture::new("stream of Cohere v1", "cohere", "application/stream+json", ["{\"event_type\":\"text-generation\",\"text\":\"x\"}\n", END].concat())
            .with_usage([3, 4, 0, 0]),
        Fixture::new("stream of Cohere v2", "cohere", SSE, "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\",\"usage\":{\"billed_units\":{\"input_tokens\":1},\"tokens\":{\"input_tokens\":3,\"output_tokens\":4}}}}\n\n")
            .with_usage([3, 4, 0, 0]),
        Fixture::new("a stream of Cohere v2 that fails", "cohere", SSE, "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"error\":\"lost\",\"finish_reason\":\"ERROR\"}}\n\n")
            .with_error("", "lost"),
        Fixture::new("features", "huggingface", JSON, "[[0.0123456789,-2e-3,0.0123456789,-2e-3,0.0123456789],[1]]"),
        Fixture::new("one feature", "huggingface", JSON, "[0.0123456789, -2e-3, 0.0123456789, -2e-3, 0.0123456789, 1]"),
    ]
}

const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";
const NDJSON: &str = "application/x-ndjson";
const AWS: &str = "application/vnd.amazon.eventstream";

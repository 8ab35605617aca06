//! The requests of the properties: of all kinds, with and without what their price needs.

use http::Request;
use paceline::provider::{ANTHROPIC, OPENAI, Profile};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provider::{CONTEXT, MAX_OUTPUT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Chat,
    Responses,
    /// A request to Responses that refers to an earlier one.
    EarlierResponse,
    Embeddings,
    Messages,
    StoredPrompt,
    Images,
    Speech,
    Batch,
    FineTuning,
    UnknownPath,
    NoModel,
    Models,
    Upload,
    CountTokens,
    /// A request that isn't HTTP, with the amount that its closure states.
    Closure(Option<u64>),
    /// A plain call of the limiter.
    Acquire(Option<u64>),
}

impl Kind {
    pub(super) fn is_billed_by_tokens(self) -> bool {
        matches!(
            self,
            Self::Chat
                | Self::Responses
                | Self::EarlierResponse
                | Self::Embeddings
                | Self::Messages
        )
    }

    /// Returns whether the request says which model it is for.
    pub(super) fn names_model(self) -> bool {
        !matches!(self, Self::NoModel | Self::Batch)
    }

    pub(super) fn is_free(self) -> bool {
        matches!(self, Self::Models | Self::Upload | Self::CountTokens)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    /// The client drops the response after this many frames.
    CutByClient(usize),
    CutByServer(usize),
    Status(u16),
    /// The connection fails after the request was sent.
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// Milliseconds until it starts, and until the provider answers.
    pub(super) delay: u64,
    pub(super) latency: u64,
    pub(super) kind: Kind,
    pub(super) model: &'static str,
    pub(super) mode: &'static str,
    pub(super) text: u64,
    /// `max_tokens`.
    pub(super) bound: Option<u64>,
    pub(super) choices: u64,
    pub(super) streams: bool,
    pub(super) end: End,
    /// The used parts of the largest input and output, in percent.
    pub(super) used: (u64, u64),
    /// The tokens that are generated after a stream was cut.
    pub(super) unseen: u64,
}

impl Job {
    /// Returns the profile that reads the request.
    pub(super) fn profile(&self) -> Profile {
        if self.kind == Kind::Messages { ANTHROPIC } else { OPENAI }
    }

    /// Returns the model that the provider runs: where the request names none, one of the provider's that it got to know
    /// elsewhere, such as from the lines of a batch.
    pub(super) fn model_that_runs(&self) -> &'static str {
        let is_of_provider = |model: &&str| OF_OPENAI.contains(model);
        match self.kind.names_model() {
            true => self.model,
            false => Some(self.model).filter(is_of_provider).unwrap_or(OF_OPENAI[0]),
        }
    }

    /// Returns the mode that the request states.
    pub(super) fn stated_mode(&self) -> &'static str {
        if self.kind == Kind::Embeddings { "" } else { self.mode }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.streams && matches!(self.kind, Kind::Chat | Kind::Messages)
    }

    /// Returns true if the stream shows all that the model generates.
    pub(super) fn shows_all(&self) -> bool {
        self.choices() == 1 && !self.model.starts_with("gpt-5")
    }

    /// Returns true if this many frames were read of the stream, of which `left` are left.
    pub(super) fn frames_read(&self, left: usize, frames: usize) -> bool {
        let texts = usize::try_from(self.output().div_ceil(7)).unwrap();
        let all = texts + if self.kind == Kind::Messages { 2 } else { 1 };
        all - left >= frames
    }

    fn choices(&self) -> u64 {
        if self.kind == Kind::Chat { self.choices } else { 1 }
    }

    /// Returns the tokens that the prompt has.
    pub(super) fn input(&self) -> u64 {
        let most = if self.kind == Kind::EarlierResponse { CONTEXT } else { self.text };
        most * self.used.0 / 100
    }

    /// Returns the bytes of the request, of which each may be a token.
    pub(super) fn bytes(&self) -> u64 {
        self.request(0).body().len() as u64
    }

    /// Returns the tokens that are generated, unless the stream is cut.
    pub(super) fn output(&self) -> u64 {
        self.most_output() * self.used.1 / 100
    }

    /// Returns the most tokens that can be generated.
    pub(super) fn most_output(&self) -> u64 {
        let bound = match self.kind {
            Kind::Embeddings => 0,
            // Anthropic's API needs a bound.
            Kind::Messages => self.bound.unwrap_or(9),
            _ => self.bound.unwrap_or(MAX_OUTPUT),
        };
        bound * self.choices()
    }

    /// Returns the request, with its number for the provider.
    pub(super) fn request(&self, number: usize) -> Request<String> {
        let (method, path, body) = self.parts();
        let request = Request::builder().method(method).uri(path).header("x-job", number);
        let body = if method == "GET" { String::new() } else { body.to_string() };
        request.body(body).unwrap()
    }

    fn parts(&self) -> (&'static str, &'static str, Value) {
        let text = "x".repeat(usize::try_from(self.text).unwrap());
        let (model, mode) = (self.model, Some(self.mode).filter(|mode| !mode.is_empty()));
        let messages = json!([{"role": "user", "content": text}]);
        match self.kind {
            Kind::Chat | Kind::NoModel => {
                let model = Some(model).filter(|_| self.kind == Kind::Chat);
                let body = json!({"model": model, "messages": messages, "n": self.choices, "stream": self.streams,
                    "max_completion_tokens": self.bound, "service_tier": mode});
                ("POST", "/v1/chat/completions", body)
            }
            Kind::Responses | Kind::EarlierResponse => {
                let earlier = (self.kind == Kind::EarlierResponse).then_some("resp_1");
                let body = json!({"model": model, "input": text, "max_output_tokens": self.bound,
                    "service_tier": mode, "previous_response_id": earlier});
                ("POST", "/v1/responses", body)
            }
            Kind::StoredPrompt => {
                ("POST", "/v1/responses", json!({"model": model, "prompt": {"id": "pmpt_1"}}))
            }
            Kind::Embeddings => ("POST", "/v1/embeddings", json!({"model": model, "input": text})),
            Kind::Messages => {
                let body = json!({"model": model, "messages": messages, "stream": self.streams,
                    "max_tokens": self.bound.unwrap_or(9), "speed": mode});
                ("POST", "/v1/messages", body)
            }
            Kind::Images => {
                ("POST", "/v1/images/generations", json!({"model": model, "prompt": text}))
            }
            Kind::Speech => ("POST", "/v1/audio/speech", json!({"model": model, "input": text})),
            Kind::Batch => ("POST", "/v1/batches", json!({"input_file_id": "file-1"})),
            Kind::FineTuning => ("POST", "/v1/fine_tuning/jobs", json!({"model": model})),
            Kind::UnknownPath => (
                "POST",
                "/v1/unheard/of",
                json!({"model": model, "messages": messages, "max_tokens": 3}),
            ),
            Kind::Models => ("GET", "/v1/models", Value::Null),
            Kind::Upload => ("POST", "/v1/files", json!({})),
            Kind::CountTokens => {
                ("POST", "/v1/messages/count_tokens", json!({"model": model, "messages": messages}))
            }
            Kind::Closure(_) | Kind::Acquire(_) => unreachable!("not HTTP"),
        }
    }
}

/// The models, of which the last has no price.
pub(super) const MODELS: [&str; 4] = ["gpt-4o", "gpt-5", "claude-3-5-haiku-latest", "house-model"];

/// The models of the provider that gets requests without a model.
const OF_OPENAI: [&str; 2] = [MODELS[0], MODELS[1]];

fn kinds(most: u64) -> impl Strategy<Value = Kind> {
    let amount = proptest::option::of(0..=most);
    prop_oneof![
        9 => proptest::sample::select(vec![Kind::Chat, Kind::Responses, Kind::Embeddings, Kind::Messages]),
        1 => Just(Kind::EarlierResponse),
        3 => proptest::sample::select(vec![
            Kind::StoredPrompt, Kind::Images, Kind::Speech, Kind::Batch, Kind::FineTuning, Kind::UnknownPath,
            Kind::NoModel, Kind::Models, Kind::Upload, Kind::CountTokens,
        ]),
        1 => amount.clone().prop_map(Kind::Closure),
        1 => amount.prop_map(Kind::Acquire),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Complete),
        1 => (0_usize..12).prop_map(End::CutByClient),
        1 => (0_usize..12).prop_map(End::CutByServer),
        1 => proptest::sample::select(vec![400, 401, 404, 413, 429]).prop_map(End::Status),
        1 => Just(End::Lost),
    ]
}

/// Returns random jobs within two days, whose largest stated amounts are `most`.
pub(super) fn jobs(most: u64) -> impl Strategy<Value = Vec<Job>> {
    let times = (0_u64..48 * 3_600_000, 0_u64..90_000);
    let modes =
        proptest::sample::select(vec!["", "", "", "priority", "fast", "flex", "unheard-of"]);
    let sizes = (0_u64..120, proptest::option::of(1_u64..120), 1_u64..3);
    let used = (0_u64..=100, 0_u64..=100);
    let model = proptest::sample::select(MODELS.to_vec());
    let job = (times, kinds(most), model, modes, sizes, any::<bool>(), ends(), used, 0_u64..400);
    let job = job.prop_map(|(times, kind, model, mode, sizes, streams, end, used, unseen)| {
        let ((delay, latency), (text, bound, choices)) = (times, sizes);
        // Many at the same time, so that they wait for each other.
        let delay = delay / 7_200_000 * 7_200_000;
        Job { delay, latency, kind, model, mode, text, bound, choices, streams, end, used, unseen }
    });
    proptest::collection::vec(job, 1..40)
}

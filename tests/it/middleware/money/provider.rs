//! A provider that bills by counting code of its own: it shares nothing with the limiter but the prices' numbers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use paceline::Timestamp;
use paceline::limiter::{Clock, TokioClock};
use serde_json::json;

use super::super::inner::InnerError;
use super::job::{End, Job, Kind};

/// Micro-dollars for a token of input and of output.
pub(super) const RATES: (u64, u64) = (2, 10);

/// The factor of the price in the dearer modes.
pub(super) const DEARER: u64 = 2;

/// The largest output of a request that sets no bound, and the length of a context.
pub(super) const MAX_OUTPUT: u64 = 150;
pub(super) const CONTEXT: u64 = 600;

/// The bill of a request.
#[derive(Debug, Clone)]
pub(super) struct Bill {
    /// The model that ran.
    pub(super) model: &'static str,
    pub(super) micros: u64,
    /// The most that it could have been, by what the client has seen.
    pub(super) most: u64,
    pub(super) sent: Timestamp,
    pub(super) ended: Timestamp,
}

#[derive(Debug)]
pub(super) struct Provider {
    clock: TokioClock,
    jobs: Vec<Job>,
    /// What a request costs that isn't billed by the token.
    flat: u64,
    bills: Mutex<Vec<Bill>>,
}

impl Provider {
    /// Creates a provider that bills a part of the budget for what isn't billed by the token.
    pub(super) fn new(jobs: &[Job], flat: u64) -> Arc<Self> {
        let (clock, bills) = (TokioClock::new(), Mutex::default());
        Arc::new(Self { clock, jobs: jobs.to_vec(), flat, bills })
    }

    pub(super) fn clock(&self) -> TokioClock {
        self.clock
    }

    pub(super) fn bills(&self) -> Vec<Bill> {
        self.bills.lock().unwrap().clone()
    }

    /// Bills work that was done outside of HTTP, and isn't billed by the token unless its price was stated.
    pub(super) fn work(&self, model: &'static str, stated: Option<u64>) {
        let now = self.clock.now();
        let micros = stated.unwrap_or(self.flat);
        self.bill(Bill { model, micros, most: micros, sent: now, ended: now });
    }

    fn bill(&self, bill: Bill) {
        self.bills.lock().unwrap().push(bill);
    }

    /// Bills a job with this output. `most` are the most tokens of input and output, by what the client has seen.
    fn bill_job(&self, job: &Job, output: u64, most: (u64, u64), sent: Timestamp) {
        let (micros, most) = (self.cost(job, job.input(), output), self.cost(job, most.0, most.1));
        let (model, ended) = (job.model_that_runs(), self.clock.now());
        self.bill(Bill { model, micros, most, sent, ended });
    }

    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<String>,
    ) -> Result<Response<Billed>, InnerError> {
        let number = request.headers()["x-job"].to_str().unwrap().parse::<usize>().unwrap();
        let (job, sent) = (self.jobs[number], self.clock.now());
        tokio::time::sleep(Duration::from_millis(job.latency)).await;
        let status = match job.end {
            End::Lost => {
                self.bill_job(&job, job.output(), (job.bytes(), job.most_output()), sent);
                return Err(InnerError);
            }
            End::Status(status) => StatusCode::from_u16(status).unwrap(),
            _ => StatusCode::OK,
        };
        let is_stream = job.is_stream() && status.is_success();
        let frames = match (status.is_success(), is_stream) {
            (false, _) => [frame("{}".to_owned(), 0)].into(),
            (true, false) => [frame(usage(&job).to_string(), job.output())].into(),
            (true, true) => stream(&job),
        };
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        let is_billed = status.is_success();
        let body =
            Billed { provider: self, job, sent, frames, generated: 0, has_text: false, is_billed };
        Ok(Response::builder().status(status).header("content-type", kind).body(body).unwrap())
    }

    /// Returns the price of a job with these tokens of input and output.
    fn cost(&self, job: &Job, input: u64, output: u64) -> u64 {
        let by_tokens = input * RATES.0 + output * RATES.1;
        match (job.kind, job.stated_mode()) {
            (kind, _) if kind.is_free() => 0,
            (kind, _) if !kind.is_billed_by_tokens() => self.flat,
            (_, "priority" | "fast") => by_tokens * DEARER,
            (_, "flex") => by_tokens.div_ceil(2),
            (_, "unheard-of") => self.flat,
            _ => by_tokens,
        }
    }
}

/// A response body, whose request is billed when it ends or is dropped.
#[derive(Debug)]
pub(super) struct Billed {
    provider: Arc<Provider>,
    job: Job,
    sent: Timestamp,
    frames: VecDeque<(Bytes, u64)>,
    /// The tokens in the frames that were read.
    generated: u64,
    has_text: bool,
    is_billed: bool,
}

impl Body for Billed {
    type Data = Bytes;
    type Error = InnerError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InnerError>>> {
        if let End::CutByServer(frames) = self.job.end
            && self.job.is_stream()
            && self.job.frames_read(self.frames.len(), frames)
        {
            return Poll::Ready(Some(Err(InnerError)));
        }
        let next = self.frames.pop_front().map(|(data, generated)| {
            self.generated += generated;
            self.has_text = true;
            Ok(Frame::data(data))
        });
        Poll::Ready(next)
    }
}

impl Drop for Billed {
    fn drop(&mut self) {
        if !self.is_billed {
            return;
        }
        let Self { provider, job, sent, .. } = self;
        // A provider that notices the end of a connection stops, a moment later. Others finish.
        let stops = job.is_stream() && self.has_text && job.shows_all();
        if self.frames.is_empty() {
            let output = job.output();
            provider.bill_job(job, output, (job.input(), output), *sent);
            return;
        }
        let output = if stops { self.generated + job.unseen } else { job.output() };
        let states_input = self.has_text && job.kind == Kind::Messages;
        let input = if states_input { job.input() } else { job.bytes() };
        provider.bill_job(job, output.min(job.output()), (input, job.most_output()), *sent);
    }
}

fn frame(text: String, tokens: u64) -> (Bytes, u64) {
    (text.into(), tokens)
}

/// Returns the body of a response that isn't streamed.
fn usage(job: &Job) -> serde_json::Value {
    let (input, output) = (job.input(), job.output());
    match job.kind {
        Kind::Messages => json!({"type": "message",
            "usage": {"input_tokens": input, "output_tokens": output}}),
        Kind::Responses | Kind::EarlierResponse => json!({"object": "response",
            "usage": {"input_tokens": input, "output_tokens": output}}),
        kind if kind.is_billed_by_tokens() => json!({"choices": [],
            "usage": {"prompt_tokens": input, "completion_tokens": output}}),
        _ => json!({"id": "x"}),
    }
}

/// Returns the events of a stream, with a few tokens of text in each, each of at least a byte.
fn stream(job: &Job) -> VecDeque<(Bytes, u64)> {
    let (input, output) = (job.input(), job.output());
    let texts = (0..output).step_by(7).map(|from| (output - from).min(7));
    let texts: Vec<_> = texts.map(|tokens| ("ab".repeat(tokens as usize), tokens)).collect();
    let event = |value: serde_json::Value| {
        let name = value["type"].as_str().map(|name| format!("event: {name}\n"));
        format!("{}data: {value}\n\n", name.unwrap_or_default())
    };
    let mut events = VecDeque::new();
    if job.kind == Kind::Messages {
        let start = json!({"type": "message_start",
            "message": {"usage": {"input_tokens": input, "output_tokens": 1}}});
        events.push_back(frame(event(start), 1.min(output)));
        events.extend(texts.iter().map(|(text, tokens)| {
            let delta = json!({"type": "text_delta", "text": text});
            frame(event(json!({"type": "content_block_delta", "delta": delta})), *tokens)
        }));
        let delta =
            json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": output}});
        events.push_back(frame(event(delta) + &event(json!({"type": "message_stop"})), 0));
    } else {
        events.extend(texts.iter().map(|(text, tokens)| {
            let choice = json!({"index": 0, "delta": {"content": text}});
            frame(event(json!({"object": "chat.completion.chunk", "choices": [choice]})), *tokens)
        }));
        let usage = json!({"object": "chat.completion.chunk", "choices": [],
            "usage": {"prompt_tokens": input, "completion_tokens": output}});
        events.push_back(frame(event(usage) + "data: [DONE]\n\n", 0));
    }
    events
}

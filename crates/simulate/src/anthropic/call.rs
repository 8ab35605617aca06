//! A request, read.

use serde_json::Value;

use super::answer::Answer;
use super::invalid;
use super::prompt::Prompt;
use crate::bill::{Bill, Claim};
use crate::cache::Prefix;
use crate::format::{Call, Format, LONGEST_OUTPUT, Made, asked_output, plain};
use crate::rejection::Rejection;
use crate::reply::ReplyBody;
use crate::settings::Charge;
use crate::tool::{ToolCall, elements};
use crate::usage::Usage;

/// What is asked for, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) prompt: Prompt,
    /// What the answer is for: to be read, or to tell how many tokens the prompt has.
    pub(super) counts: bool,
    max_output: u64,
    asked_output: Option<u64>,
    stream: bool,
    /// The call that `tool_choice` forces.
    pub(super) forced: Option<ToolCall>,
}

impl Request {
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self, Rejection> {
        let path = plain(path);
        let counts = path.ends_with("/count_tokens");
        if !counts && !path.ends_with("/messages") {
            return Err(super::Anthropic.unknown("POST", path));
        }
        let body: Value = serde_json::from_slice(body)
            .map_err(|_| invalid("The request body is not valid JSON"))?;
        let model = body["model"].as_str().filter(|model| !model.is_empty());
        let messages = body["messages"].as_array().ok_or_else(|| required("messages"))?;
        let max_output = match body["max_tokens"].as_u64() {
            Some(0) => Err(invalid("max_tokens: Input should be greater than or equal to 1")),
            Some(max) => Ok(max),
            None if counts => Ok(0),
            None => Err(required("max_tokens")),
        };
        Ok(Self {
            model: model.ok_or_else(|| required("model"))?.to_owned(),
            prompt: Prompt::of(&body, messages),
            counts,
            max_output: max_output?,
            asked_output: asked_output(&body)
                .map_err(|name| invalid(format!("{name}: {WHOLE}")))?,
            stream: body["stream"].as_bool().unwrap_or(false) && !counts,
            forced: forced(&body),
        })
    }
}

impl Call for Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn input(&self) -> u64 {
        if self.counts { 0 } else { self.prompt.tokens }
    }

    fn asked_output(&self) -> Option<u64> {
        self.asked_output.or_else(|| self.forced.as_ref().map(ToolCall::tokens))
    }

    fn output(&self, wanted: u64) -> u64 {
        wanted.min(self.max_output).min(LONGEST_OUTPUT)
    }

    fn prefixes(&self) -> &[Prefix] {
        if self.counts { &[] } else { &self.prompt.prefixes }
    }

    fn bill(&self, usage: &Usage, _charge: Charge) -> Bill {
        if self.counts {
            return Bill::default();
        }
        let room = self.prompt.estimate().saturating_sub(usage.cache_read).max(1);
        let taken = usage.input.saturating_sub(usage.cache_read);
        Bill {
            requests: Claim::at_once(1),
            tokens: Claim { room, taken, made: usage.output },
            input: Claim { room, taken, made: 0 },
            output: Claim { room: 1, taken: 0, made: usage.output },
        }
    }

    fn write(&self, made: &Made<'_>) -> (&'static str, ReplyBody) {
        let answer = Answer { call: self, made };
        match self.stream {
            true => ("text/event-stream; charset=utf-8", ReplyBody::Stream(answer.frames())),
            false => ("application/json", ReplyBody::Json(answer.json().to_string().into())),
        }
    }
}

/// The call of any tool, or of one.
fn forced(body: &Value) -> Option<ToolCall> {
    let choice = &body["tool_choice"];
    let allowed = match choice["type"].as_str()? {
        "any" => None,
        "tool" => Some([&choice["name"]]),
        _ => return None,
    };
    // Tools that Anthropic runs itself have no schema.
    let tools = elements(&body["tools"]).filter(|tool| tool["input_schema"].is_object());
    let tools = tools.map(|tool| (&tool["name"], &tool["input_schema"]));
    ToolCall::first(tools, allowed.as_ref().map(<[_; 1]>::as_slice))
}

fn required(name: &str) -> Rejection {
    invalid(format!("{name}: Field required"))
}

const WHOLE: &str = "Input should be a valid integer";

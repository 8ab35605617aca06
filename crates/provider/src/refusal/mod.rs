//! Reads refusals: the one place that decides what a provider's refusal means.
//!
//! What is recognised first is structure: the status, codes, amounts, windows and times. Then come words that many
//! providers share ([`kinds`]), in codes and messages alike.

mod amounts;
mod delay;
mod kinds;
mod words;

use std::cell::OnceCell;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Refusal, RefusalKind, RefusalScope};
use paceline_limiter::quota::{Calendar, Dimension, Period};

use self::amounts::Amounts;
use self::delay::Stated;
use self::words::Words;
use crate::error::{ApiError, ErrorRules};
use crate::json_member;

/// Returns the refusal in a response; `None` if it is a success, or fails for another reason.
pub(super) fn of_response(
    rules: &ErrorRules,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Option<Refusal> {
    (status.as_u16() >= 400)
        .then(|| Evidence::of_response(status, headers, body).refusal(rules, headers, now))?
}

/// Returns the refusal that an error in the body of a success states.
pub(super) fn of_error(rules: &ErrorRules, error: &ApiError, now: Timestamp) -> Option<Refusal> {
    Evidence::new(error, error.details()).refusal(rules, &HeaderMap::new(), now)
}

/// Returns the delay that a response states, whether it is a refusal or not: see
/// [`Profile::retry_delay`](crate::Profile::retry_delay).
pub(super) fn stated_delay(
    rules: &ErrorRules,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Option<Duration> {
    let now = crate::date::of_response(headers).unwrap_or(now);
    let body = || {
        let evidence = Evidence::of_response(StatusCode::TOO_MANY_REQUESTS, headers, body);
        evidence.in_body(rules).next()
    };
    Some(delay::in_headers(headers).or_else(body)?.delay(now))
}

/// What an answer shows.
struct Evidence {
    /// The status, or the one that the error's code is; 0 for none.
    status: u16,
    codes: Words,
    text: Words,
    /// The codes as they are written, for the lists of a profile.
    written_codes: Vec<String>,
    /// The id of the quota, from Google's `details`.
    quota: Option<String>,
    /// The messages; the first is the error's own.
    messages: Vec<String>,
    members: Vec<(String, String)>,
    own_words: OnceCell<Words>,
}

impl Evidence {
    fn of_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let error = ApiError::read(body).unwrap_or_default().with_kind_from(headers);
        let mut evidence = Self::new(&error, body);
        let stated = status.as_u16();
        // A gateway may answer another status than the one that it passes on.
        if !(evidence.status == 429 && stated >= 500) {
            evidence.status = stated;
        }
        if evidence.members.is_empty() && evidence.messages.is_empty() {
            evidence.add_message(&plain_text(body));
        }
        evidence
    }

    /// Returns what an error shows and the members of its JSON.
    fn new(error: &ApiError, json: &[u8]) -> Self {
        let status = error.code().and_then(|code| StatusCode::from_bytes(code.as_bytes()).ok());
        let mut evidence = Self {
            status: status.map_or(0, |status| status.as_u16()),
            codes: Words::default(),
            text: Words::default(),
            written_codes: Vec::new(),
            quota: error.quota().map(str::to_owned),
            messages: Vec::new(),
            members: Vec::new(),
            own_words: OnceCell::new(),
        };
        error.codes().for_each(|code| evidence.add_code(code));
        let (message, _) = json_member::split(error.message());
        if !message.is_empty() {
            evidence.add_message(&message);
        }
        let members = json_member::all(json);
        if evidence.quota.is_none() {
            let ids = members.iter().filter(|(name, _)| name == "quotaId").map(|(_, id)| &**id);
            let ids = ids.collect::<Vec<_>>().join(" ");
            evidence.quota = Some(ids).filter(|ids| !ids.is_empty());
        }
        for (name, value) in &members {
            let has_name = |names: &[&str]| names.contains(&name.as_str());
            let is_message = has_name(json_member::MESSAGES) || has_name(OTHER_MESSAGES);
            match value.contains(char::is_whitespace) {
                true if is_message => evidence.add_message(value),
                false if is_message || has_name(CODES) => evidence.add_code(value),
                _ => {}
            }
        }
        evidence.members = members;
        evidence
    }

    fn add_code(&mut self, code: &str) {
        let code: String = code.chars().take(LONGEST_CODE).collect();
        if !self.written_codes.contains(&code) {
            self.codes.add(&code);
            self.written_codes.push(code);
        }
    }

    fn add_message(&mut self, message: &str) {
        let message: String = message.chars().take(LONGEST_MESSAGE).collect();
        if self.messages.len() < MAX_MESSAGES && !self.messages.contains(&message) {
            self.text.add(&message);
            self.messages.push(message);
        }
    }

    fn has(&self, rules: &[&str]) -> bool {
        self.codes.has(rules) || self.text.has(rules)
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.written_codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    /// Returns the delays in the body: those of members before those in words.
    fn in_body(&self, rules: &ErrorRules) -> impl Iterator<Item = Stated> {
        let members = delay::in_members(&self.members, rules.delay_fields);
        members.into_iter().chain(self.in_text())
    }

    fn in_text(&self) -> impl Iterator<Item = Stated> {
        self.messages.iter().flat_map(|message| delay::in_text(message))
    }

    fn refusal(&self, rules: &ErrorRules, headers: &HeaderMap, now: Timestamp) -> Option<Refusal> {
        // Times are measured from the time at which the provider answered.
        let now = crate::date::of_response(headers).unwrap_or(now);
        let amounts = Amounts::read(&self.text);
        let used_up = delay::of_used_up_windows(headers, now).filter(|_| self.status == 429);
        let in_headers = delay::in_headers(headers);
        let in_body: Vec<Stated> = self.in_body(rules).collect();
        let is_long = |stated: &Stated| stated.delay(now) >= LONG;
        let is_short = |stated: &Stated| !stated.delay(now).is_zero() && !is_long(stated);
        let hints = Hints {
            is_used_up: used_up.is_some(),
            is_long: in_body.iter().any(is_long)
                || self.text.has(kinds::QUOTA) && in_headers.as_ref().is_some_and(is_long),
            is_short: in_body.iter().any(is_short),
            has_delay: !in_body.is_empty() || in_headers.as_ref().is_some_and(is_short),
        };
        let kind = self.kind(rules, &amounts, &hints)?;
        let mut refusal = Refusal::new(kind);
        refusal.window = self.window();
        refusal.dimension = self.dimension();
        refusal.limit = amounts.limit.or_else(|| self.quota_value()).filter(|limit| *limit > 0);
        (refusal.used, refusal.requested) = (amounts.used, amounts.requested);
        refusal.scope = self.scope(kind);
        refusal.status = Some(self.status).filter(|status| *status > 0);
        let message = self.messages.first().map_or("", String::as_str);
        refusal.text = message.chars().take(Refusal::LONGEST_TEXT).collect();
        let mut stated: Vec<Stated> = in_headers.into_iter().chain(in_body).collect();
        match kind {
            RefusalKind::Request => stated.clear(),
            // The first takes precedence.
            RefusalKind::Rate | RefusalKind::Capacity => stated.truncate(1),
            _ => {
                let reset = used_up.flatten().or_else(|| delay::of_unmeasured_windows(headers));
                let reset = reset.map(|reset| Stated::At(now + reset));
                let of_day = || self.end_of_day(rules, now).filter(|_| kind == RefusalKind::Window);
                stated.extend(reset.or_else(of_day));
                // A used-up window hasn't started again.
                stated.retain(|stated| !stated.delay(now).is_zero());
            }
        }
        let latest = stated.into_iter().rev().max_by_key(|stated| stated.delay(now));
        refusal.delay = latest.map(|stated| stated.delay(now));
        refusal.until = match latest {
            Some(Stated::At(time)) => Some(time),
            _ => None,
        };
        Some(refusal)
    }

    fn kind(&self, rules: &ErrorRules, amounts: &Amounts, hints: &Hints) -> Option<RefusalKind> {
        let &Hints { is_used_up, is_long, is_short, has_delay } = hints;
        let is_own = self.has_code(rules.transient_codes);
        let is_client_error = self.status < 500;
        let is_refused = matches!(self.status, 429 | 503 | 529);
        let is_account = !is_own && (self.has_code(rules.account_codes) || self.is_of_account());
        // A limit of nothing belongs to a plan without the model.
        let is_without =
            self.status == 429 && amounts.limit.or_else(|| self.quota_value()) == Some(0);
        let is_capped = self.status == 412 && self.has(kinds::FORBIDDEN);
        if is_account || is_without || is_capped || matches!(self.status, 401 | 402) {
            return Some(RefusalKind::Account);
        }
        if self.is_too_large(amounts) {
            return Some(RefusalKind::Request);
        }
        let is_exhausted = !matches!(self.status, 503 | 529) && self.states(kinds::EXHAUSTED);
        let is_rate = is_own || self.status == 429 || self.states(kinds::RATE) || is_exhausted;
        let may_be_limited = is_rate || is_refused || matches!(self.status, 0 | 403);
        if may_be_limited && (is_used_up || self.is_long_window(rules, is_long, is_short)) {
            return Some(RefusalKind::Window);
        }
        if self.has_no_capacity() {
            return Some(RefusalKind::Capacity);
        }
        let is_request =
            self.has(kinds::REQUEST) || self.has_code(rules.request_codes) && is_refused;
        if is_client_error && is_request {
            return Some(RefusalKind::Request);
        }
        let is_limit = self.codes.has(kinds::RATE_CODES) || self.quota.is_some();
        let lacks_money = || is_refused && !self.has(kinds::RATE) && self.has(kinds::PURCHASE);
        let may_be_account = !is_own
            && !is_limit
            && !has_delay
            && (self.states(kinds::MAYBE_ACCOUNT) || lacks_money());
        let has_window = self.window().is_some();
        let is_forbidden = match self.status {
            400 => self.states(kinds::INVALID),
            403 => self.has(kinds::FORBIDDEN),
            _ => false,
        };
        if may_be_account || is_forbidden && !has_window {
            return Some(RefusalKind::Account);
        }
        let may_be_request =
            !has_delay && !self.has(kinds::LATER) && self.has(kinds::MAYBE_REQUEST);
        if is_client_error && may_be_request && self.dimension() != Some(Dimension::Concurrency) {
            return Some(RefusalKind::Request);
        }
        match self.status {
            _ if is_rate => Some(RefusalKind::Rate),
            0 if self.has(kinds::SLOW_DOWN) => Some(RefusalKind::Rate),
            503 | 529 => Some(RefusalKind::Capacity),
            _ => None,
        }
    }

    /// Returns true if the account can't send requests. A faulty request may have the words in its own names.
    fn is_of_account(&self) -> bool {
        match self.is_faulty() {
            true => self.states(kinds::ACCOUNT),
            false => {
                self.codes.has(kinds::ACCOUNT)
                    || self.text.except(kinds::ADVICE).has(kinds::ACCOUNT)
            }
        }
    }

    /// Returns true if the request is larger than what is accepted at any time.
    fn is_too_large(&self, amounts: &Amounts) -> bool {
        // A request is one request.
        let counts_requests =
            || matches!(self.dimension(), Some(Dimension::Requests | Dimension::Concurrency));
        let is_throttled = || self.codes.has(kinds::RATE_CODES) || self.has(kinds::LATER);
        let is_oversized = matches!(self.status, 400 | 422)
            && !is_throttled()
            && self.own_words().has(kinds::SIZE);
        self.status == 413 || is_oversized || amounts.never_fits() && !counts_requests()
    }

    /// Returns true for the statuses of requests that have a fault.
    fn is_faulty(&self) -> bool {
        matches!(self.status, 400 | 404 | 405 | 409 | 415 | 422)
    }

    /// Returns true if a code or a message matches one of the rules. If the request may have a fault, the names that a
    /// message quotes from it don't count.
    fn states(&self, rules: &[&str]) -> bool {
        match self.is_faulty() {
            true => {
                self.codes.has(rules)
                    || !self.codes.has(kinds::FAULTY) && self.own_words().has(rules)
            }
            false => self.has(rules),
        }
    }

    /// Returns the words of the messages without the names that they quote from the request.
    fn own_words(&self) -> &Words {
        self.own_words.get_or_init(|| Words::without_names(&self.messages))
    }

    fn has_no_capacity(&self) -> bool {
        let rules = match self.status {
            0 | 429.. => kinds::CAPACITY,
            // OpenAI.
            400 => kinds::OVERLOAD,
            _ => return false,
        };
        self.states(rules) && !self.has(YOURS)
    }

    fn is_long_window(&self, rules: &ErrorRules, is_long: bool, is_short: bool) -> bool {
        let has_text = |text: &&str| self.messages.iter().any(|message| message.contains(*text));
        match self.window() {
            _ if rules.long_window_texts.iter().any(has_text) => true,
            Some(window) => window >= LONG,
            // A long delay doesn't contradict a limit that is named by a rate.
            None if self.has(kinds::WINDOW) => true,
            None => {
                !is_short && self.has(kinds::MAYBE_WINDOW)
                    || is_long && !self.text.has(&["rate limit*"])
            }
        }
    }

    /// Returns the length of the window of the limit. Of several quotas the longest counts: it resets last.
    fn window(&self) -> Option<Duration> {
        let quota = self.quota.as_deref().and_then(|quota| {
            let mut words = Words::default();
            words.add(quota);
            amounts::window(&words, true)
        });
        quota
            .or_else(|| amounts::window(&self.text, false))
            .or_else(|| amounts::window(&self.codes, true))
    }

    fn dimension(&self) -> Option<Dimension> {
        match self.quota.as_deref() {
            // Gemini's limit of input tokens is its total-token limit.
            Some(quota) if quota.contains("Tokens") => Some(Dimension::Tokens),
            Some(quota) if quota.contains("Requests") => Some(Dimension::Requests),
            _ => amounts::dimension(&self.codes, &self.text),
        }
    }

    fn quota_value(&self) -> Option<u64> {
        let value = self.members.iter().find(|(name, _)| name == "quotaValue");
        value.and_then(|(_, value)| value.parse().ok())
    }

    fn scope(&self, kind: RefusalKind) -> RefusalScope {
        let quota = self.quota.as_deref();
        match kind {
            RefusalKind::Request => RefusalScope::Request,
            RefusalKind::Account if self.has(&["api key|key limit"]) => RefusalScope::Key,
            _ if quota.is_some_and(|quota| quota.contains("PerModel")) => RefusalScope::Model,
            RefusalKind::Account => RefusalScope::Account,
            _ if self.has(kinds::OF_MODEL) => RefusalScope::Model,
            RefusalKind::Capacity => RefusalScope::Provider,
            _ if self.has(kinds::OF_ACCOUNT) => RefusalScope::Account,
            _ => RefusalScope::Key,
        }
    }

    /// Returns the next midnight of a provider whose limits per day reset then.
    fn end_of_day(&self, rules: &ErrorRules, now: Timestamp) -> Option<Stated> {
        if self.window() != Some(DAY) || self.in_text().any(|stated| stated.delay(now) >= LONG) {
            return None;
        }
        let calendar = Calendar::new(Period::Day, rules.day_zone?).ok()?;
        Some(Stated::At(calendar.around(now).end))
    }
}

/// The facts beside words by which kinds differ.
struct Hints {
    /// True if headers state that a long window is used up.
    is_used_up: bool,
    /// True if a delay of an hour or longer is stated.
    is_long: bool,
    /// True if the body states a shorter one.
    is_short: bool,
    /// True if a delay is stated after which the request is accepted.
    has_delay: bool,
}

/// Returns the text of a body that isn't JSON, without tags.
fn plain_text(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(&body[..body.len().min(LONGEST_PAGE)]);
    let mut text = String::new();
    for (at, part) in body.split('<').enumerate() {
        let shown = if at == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) };
        text.push_str(shown);
        text.push(' ');
    }
    text.trim().to_owned()
}

/// A limit of an hour or longer is a window that is waited for.
const LONG: Duration = Duration::from_secs(3_600);

const DAY: Duration = Duration::from_secs(86_400);

/// Capacity that is the client's own is a limit.
const YOURS: &[&str] = &["your capacity"];

/// The members of an error that hold codes, and those that hold messages. Others may repeat the request.
const CODES: &[&str] = &[
    "code",
    "type",
    "status",
    "reason",
    "error_code",
    "errorCode",
    "error_type",
    "errorType",
    "err_code",
    "__type",
];
const OTHER_MESSAGES: &[&str] = &["title", "code"];

const MAX_MESSAGES: usize = 8;
const LONGEST_MESSAGE: usize = 1_024;
const LONGEST_CODE: usize = 200;
const LONGEST_PAGE: usize = 4_096;

//! The words by which the kind of a refusal is recognised: rules of [`Words::has`](super::words::Words::has).
//!
//! They are words that many providers share, and the codes of single ones.

/// The account can't send requests.
pub(super) const ACCOUNT: &[&str] = &[
    // Money.
    "no balance|zero balance|low balance|negative balance|no credit|no credits|no funds",
    "insufficient|not enough|too low|exhausted|depleted|consumed|used all|used up|run out|ran out|out of|requires more|\
     doesnt have|dont have|does not have|do not have|any more & balance|credit|credits|fund|funds|prepayment",
    "included credits|monthly credits|credit limit & exceed*|reached",
    "check|recharge|top up|replenish & balance",
    "balance is 0*",
    "spend|spending & limit|limits|cap|budget",
    "budget & exceed*|reached|exhausted|spent|over",
    "overdue|arrear*|past due|unpaid|delinquent|in good standing|failure to pay",
    "payment required|payment failed|payment declined|payment overdue",
    "payment method|payment instrument & invalid|must be|required|declined|failed|expired|valid",
    "hard limit & billing",
    "billing & not active|disabled|error|inactive|suspended|requires|enable|enabled|issue|problem",
    "recharge|recharged|regain access",
    // The account or its key.
    "suspended|suspension|deactivated|banned|frozen|not active|inactive & account|organization|organisation|consumer|\
     project|team|workspace|user",
    "account has|account is|account was|organization has|organization is|organization was|organisation has|\
     consumer has|team has|team is|api access is|model service has & disabled|blocked|locked|paused|restricted|\
     terminated",
    "account disabled|account locked|organization disabled|blocked api access",
    "expired & plan|package|subscription|membership|trial",
    "free tier|free quota|free trial|trial quota & exhausted|used up|expired|ended|depleted",
    "api key & invalid|incorrect|not valid|expired|revoked",
    "authentication error|unauthenticated",
    "specified|configured & usage limit|usage limits",
    // OpenAI and compatible servers.
    "insufficient quota|usage not included",
    // AWS.
    "unrecognized client|invalid signature|expired token|missing authentication token",
];

/// Words that the account's errors have, and others copy: they count if nothing else is shown.
pub(super) const MAYBE_ACCOUNT: &[&str] = &["billing details|plan and billing"];

/// Limits that are the account's in a 400 and in a 403, which are no rates.
pub(super) const INVALID: &[&str] = &["usage limit|usage limits & reached|exceed*"];
pub(super) const FORBIDDEN: &[&str] =
    &["key limit|usage limit|usage limits|quota|total limit & exceed*|reached|exhausted|over"];

/// The request can't be accepted at its size.
pub(super) const REQUEST: &[&str] = &[
    "too large|too big|is too long|are too long|too long for|too many & request|prompt|input|inputs|message|messages|\
     context|body|payload|document|conversation|content & too large|too big|too long|input tokens in",
    "context length|context window|context size|maximum context|max context & exceed*|maximum|longer|larger|over|\
     beyond|limit|greater",
    "input|inputs|prompt & must be & tokens",
    "token count & exceeds|exceed",
    "request too large|context length exceeded|string above max length|tokens limit reached|input too long",
    "must be reduced",
    "exceeds|exceed|exceeded|above & maximum|max|allowed & size|length",
    "single request & exceed*|larger|more than|limit",
    "long context",
];

/// Advice for requests that are too large, which others have too: it counts if no delay is stated.
pub(super) const MAYBE_REQUEST: &[&str] =
    &["reduce|shorten|decrease & length|size|prompt|input|context|messages|max tokens"];

/// Refusals that end by themselves.
pub(super) const LATER: &[&str] = &["later|moment|shortly|soon"];

/// A limit of an hour or longer is used up, whose length is not stated.
pub(super) const WINDOW: &[&str] = &[
    "usage limit|usage limits|usage quota|usage cap|call volume quota & reached|exceed*|hit|exhausted|out of|used up",
    "billing cycle|this period|this month|this week|today & limit|quota|usage|used all|used up|no more",
    "will be refreshed|will refresh|will be replenished|will renew & quota|limit|usage",
];

/// The provider is overloaded.
pub(super) const CAPACITY: &[&str] = &[
    "overload*",
    "at capacity|full capacity|maximum capacity|no capacity|capacity exceeded|capacity exhausted|insufficient capacity|\
     out of capacity|not enough capacity|limited capacity|capacity constraint*|over capacity|lack of capacity|\
     capacity is",
    "high demand|high traffic|heavy traffic|heavy load|high load|peak load|too busy",
    "model|server|service|engine|system & busy",
    "being loaded|is loading|currently loading|still loading|model loading|not ready to serve|model not ready",
    "resource|resources & unavailable|not available",
    "queue & exceeded|full|long",
    "pending requests exceeded",
    "no available|none available|no & instance|instances|worker|workers|gpu|gpus|replica|replicas|provider|providers|\
     channel|channels & available",
    "temporarily & rate limited & upstream",
    "temporarily unavailable",
];

/// Words for it that don't mean anything else.
pub(super) const OVERLOAD: &[&str] = &["overload*"];

/// Requests are sent too fast, in the body of a success.
pub(super) const SLOW_DOWN: &[&str] = &["slow down"];

/// Requests are sent too fast. Needed in a status other than 429.
pub(super) const RATE: &[&str] = &[
    "rate limit*|ratelimit*|rate exceeded|rate is exceeded|rate reached",
    "too many requests|too many tokens|too many concurrent",
    "throttl*",
    "resource exhausted|resource has been exhausted",
    "quota|limit & exceeded|reached & per|rpm|tpm|requests|tokens",
    "quota exceeded|exceeded your current quota",
];

/// Codes and statuses that state a limit which isn't money.
pub(super) const RATE_CODES: &[&str] = &["rate limit*|ratelimit*|resource exhausted|throttl*"];

/// The limit is the model's.
pub(super) const OF_MODEL: &[&str] = &[
    "per model|by model|for model|this model|that model|the model|on model|model is|model overloaded|model capacity|\
     model rate",
    "reached for|too large for & in organization",
];

/// The limit is the account's.
pub(super) const OF_ACCOUNT: &[&str] =
    &["account|organization|organisation|team|workspace|project|subscription|your plan"];

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
    "account disabled|account locked|organization disabled|blocked api access|access was terminated|\
     access has been terminated",
    "expired|disabled|cancelled|canceled & plan|package|subscription|membership|trial",
    "api key|access key|your key|key is & invalid|incorrect|not valid|expired|revoked|leaked|compromised|disabled|\
     blocked|suspended",
    "outstanding invoice|outstanding balance|unpaid invoice",
    "requires a subscription|requires a paid plan|requires a paid subscription|not purchased",
    "out of extra usage",
    "wallet & empty|insufficient|exhausted",
    "authentication error|unauthenticated",
    "specified|configured & usage limit|usage limits",
    // OpenAI and compatible servers.
    "insufficient quota|usage not included",
    "余额不足|欠费|余额已|请充值|账户已停用|账号已停用|账户已被|账号已被|套餐已过期|套餐已到期",
    // AWS.
    "unrecognized client|invalid signature|expired token|missing authentication token",
];

/// Words that the account's errors have, and others copy: they count if nothing else is shown.
pub(super) const MAYBE_ACCOUNT: &[&str] = &[
    "billing details|plan and billing",
    "free tier|free quota|free trial|trial quota & exhausted|used up|expired|ended|depleted",
    "额度不足|额度已用尽|额度已用完|额度用尽",
];

/// Advice for an account without money, which others give for higher limits: it counts if nothing else is shown.
pub(super) const PURCHASE: &[&str] =
    &["add|purchase|buy|need more & credits|credit|funds|money|balance"];

/// Advice about limits, which names money.
pub(super) const ADVICE: &[&str] = &[
    "higher limit|higher limits|higher rate|limits increase|limit increase|depend on|depends on|\
     increase your limits|increase limits",
];

/// Codes of requests that have a fault.
pub(super) const FAULTY: &[&str] = &[
    "invalid function|invalid value|invalid type|invalid json|invalid schema|invalid parameter|unknown parameter|\
     unsupported parameter|unsupported value|missing required|tool use failed|model not found",
];

/// Limits that may be long, and are no rate.
pub(super) const QUOTA: &[&str] = &["quota"];

/// Limits that are the account's in a 400 and in a 403, which are no rates.
pub(super) const INVALID: &[&str] = &["usage limit|usage limits & reached|exceed*"];
pub(super) const FORBIDDEN: &[&str] = &[
    "invalid token|invalid access token",
    "key limit|usage limit|usage limits|quota|total limit & exceed*|reached|exhausted|over",
];

/// The request can't be accepted at its size.
pub(super) const REQUEST: &[&str] = &[
    "too large|too big|is too long|are too long|too long for|too many & request|prompt|input|inputs|message|messages|\
     context|body|payload|document|conversation|content & too large|too big|too long|input tokens in",
    "context length|context window|context size|maximum context|max context & exceed*|maximum|longer|larger|over|\
     beyond|limit|greater",
    "input|inputs|prompt & must be & tokens",
    "token count & exceeds|exceed",
    "request too large|context length exceeded|string above max length|tokens limit reached|input too long",
    "must be reduced & token|tokens|input|prompt|size|length",
    "exceeds|exceed|exceeded|above & maximum|max|allowed & size|length",
    "single request & exceed*|larger|more than|limit",
    "long context & not available|not yet available|not enabled|required|requires|beta",
    "超长|过长|最大长度|长度超|上下文长度",
];

/// The same in an answer that refuses the request for a fault.
pub(super) const SIZE: &[&str] = &[
    "exceed|exceeded|more than|less than|at most|longer than|larger than & tokens|input length",
    "exceed* & token limit|model limit|context limit",
    "input length|prompt length & range|should be|must be|exceed*",
    "too many tokens|too many input tokens",
];

/// Advice for requests that are too large, which others have too: it counts if no delay is stated.
pub(super) const MAYBE_REQUEST: &[&str] =
    &["reduce|shorten|decrease & length|size|prompt|input|context|messages|max tokens"];

/// Refusals that end by themselves.
pub(super) const LATER: &[&str] = &["later|moment|shortly|soon|wait|稍后|稍候"];

/// A limit of an hour or longer is used up, whose length is not stated.
pub(super) const WINDOW: &[&str] = &[
    "usage limit|usage limits|usage quota|usage cap|call volume quota & reached|exceed*|hit|exhausted|out of|used up",
    "billing cycle|this period|this month|this week|today|todays|tomorrow & limit|quota|usage|used all|used up|no more",
    "使用上限|每日|每天|每周|每月|当日|今日|当天|本月|小时 & 上限|限额|配额|额度|次数|用完|用尽",
];

/// The same, unless it is soon over.
pub(super) const MAYBE_WINDOW: &[&str] = &[
    "hit|reached & your limit|session limit|session usage limit & reset|resets|wait|upgrade",
    "will be refreshed|will refresh|will be replenished|will renew & quota|limit|usage",
];

/// The provider is overloaded.
pub(super) const CAPACITY: &[&str] = &[
    "overload*",
    "at capacity|full capacity|maximum capacity|no capacity|capacity exceeded|capacity exhausted|insufficient capacity|\
     out of capacity|not enough capacity|limited capacity|capacity constraint*|over capacity|lack of capacity|\
     capacity is",
    "high demand|high traffic|heavy traffic|heavy load|high load|peak load|too busy",
    "model|server|service|engine|system|worker|workers|cluster & busy|saturated",
    "load & too high|server load|is high",
    "capacity temporarily|out of gp us|out of gpu|temporarily unable|too much traffic|too much load",
    "负载|繁忙|访问量过大|饱和|资源不足|算力不足",
    "being loaded|is loading|currently loading|still loading|model loading|not ready to serve|model not ready",
    "resource|resources & unavailable|not available",
    "queue & exceeded|full|long",
    "pending requests exceeded",
    "no available|none available|no & instance|instances|worker|workers|gpu|gpus|replica|replicas|provider|providers|\
     channel|channels|deployment|deployments & available",
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
    "quota|limit & exceeded|reached & per|rpm|tpm|requests|tokens",
    "quota exceeded|exceeded your current quota",
    "conn limit|connection limit|rate growth",
    "过于频繁|频率过高|频率限制|请求频率|速率限制|限流|限频|请求过多|请求数限制|并发数|并发过",
];

/// Requests are sent too fast, unless the server says that it is its own fault.
pub(super) const EXHAUSTED: &[&str] = &["resource exhausted|resource has been exhausted"];

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

//! Providers with OpenAI's format that charge by usage.

use paceline_limiter::quota::Algorithm;

use crate::Profile;
use crate::api::Api;
use crate::charge::Charge;
use crate::cut_streams::CutStreams;
use crate::error::ErrorRules;
use crate::limits::LimitHeaders;
use crate::prompt_weights::PromptWeights;
use crate::rules::Rules;

/// DeepSeek, `api.deepseek.com`.
///
/// - **Charge**: requests in flight are limited for each account and model, not their rate. A request
///   counts until its response is complete. `Tokens` are the usage. Source: DeepSeek's page on rate limits
///   (api-docs.deepseek.com/quick_start/rate_limit, looked up on 2026-11-23).
/// - **Cut streams** are charged for what was received: they show the reasoning.
/// - **Limits**: no headers. **Quotas**: of an account without an increase.
pub const DEEPSEEK: Profile = Profile::new(
    &hosted("deepseek")
        .urls(&["api.deepseek.com"])
        .cut_streams(CutStreams::stopping())
        .api(Api::bearer(&["DEEPSEEK_API_KEY"]).origin("https://api.deepseek.com")),
);

/// xAI, `api.x.ai`.
///
/// - **Charge** (`Tokens`, the TPM limit): all tokens, those read from a cache and reasoning tokens
///   included, by usage. Its chat completions state reasoning tokens in addition to `completion_tokens`.
/// - **Limits**: requests per second and tokens per minute, by model. Its pages name no headers; those of
///   other providers are read.
/// - **Cut streams** are charged for what was received, with models that don't reason.
/// - **Quotas**: tier 0, which every account has. Source of all: xAI's page on rate limits
///   (docs.x.ai/developers/rate-limits, looked up on 2026-11-23).
pub const XAI: Profile = Profile::new(
    &hosted("xai")
        .urls(&["api.x.ai", "*.api.x.ai"])
        .cut_streams(CutStreams::stopping_for(&["grok-2*", "*non-reasoning*"]))
        .api(Api::bearer(&["XAI_API_KEY"]).origin("https://api.x.ai")),
);

/// Moonshot, `api.moonshot.ai` and `api.moonshot.cn`: the Kimi models.
///
/// - **Charge** (`Tokens`, the TPM and TPD limits): the prompt and `max_completion_tokens`, "regardless of
///   the actual number of tokens generated". If a request sets none, the model's default counts: 131,072
///   for Kimi K3; for other models 1,024 is assumed.
/// - **Limits**: requests in flight, requests and tokens per minute and tokens per day, which all models
///   of an account share. Headers: `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of requests.
/// - **Quotas**: tier 0, of an account that paid $1, shared by the models of each name. Source of all:
///   Moonshot's pages on rate limits (platform.kimi.ai/docs/introduction, platform.kimi.ai/docs/pricing/limits,
///   kimi.com/help/kimi-api/api-rate-limits, looked up on 2026-11-23).
pub const MOONSHOT: Profile = Profile::new(
    &hosted("moonshot")
        .urls(&["api.moonshot.ai", "api.moonshot.cn"])
        .charge(Charge::by_prompt_and_bound().default_bounds(&[("kimi-k3*", 131_072)]))
        .api(Api::bearer(&["MOONSHOT_API_KEY"]).origin("https://api.moonshot.ai")),
);

/// Together, `api.together.xyz`.
///
/// - **Charge**: requests and tokens, by usage.
/// - **Limits**: its headers state requests per second (recorded), in which limits per minute are enforced: 60 per
///   minute as 1 per second (docs.together.ai/docs/rate-limits, looked up on 2026-11-25). **Quotas**: none; they follow
///   from the account's recent use.
pub const TOGETHER: Profile = Profile::new(
    &hosted("together")
        .urls(&["api.together.xyz", "api.together.ai"])
        .limits(LimitHeaders::TOGETHER)
        .api(Api::bearer(&["TOGETHER_API_KEY"]).origin("https://api.together.xyz")),
);

/// Cerebras, `api.cerebras.ai`.
///
/// - **Charge** (`Tokens`): admitted by the prompt and `max_completion_tokens`, or the rest of the
///   context if that is unset (8,192 tokens are assumed: the shortest context served); in the end the
///   usage. Source: Cerebras' page on rate limits.
/// - **Limits**: token buckets; its headers state requests per day and tokens per minute.
/// - **Quotas**: none; they differ by model and tier.
pub const CEREBRAS: Profile = Profile::new(
    &hosted("cerebras")
        .urls(&["api.cerebras.ai"])
        .algorithm(Algorithm::TokenBucket)
        .charge(Charge::by_usage().reserving_max_output().context(8_192))
        .limits(LimitHeaders::BY_NAME)
        .api(Api::bearer(&["CEREBRAS_API_KEY"]).origin("https://api.cerebras.ai")),
);

/// Fireworks, `api.fireworks.ai`, serverless.
///
/// - **Charge**: prompt tokens and generated tokens per minute, apart, for each account and model, by usage.
///   Uncached prompt tokens have a lower limit of their own, which isn't built in.
/// - **Limits**: adaptive. Its headers state them "in tokens per second" although they are enforced per minute, so
///   they aren't read.
/// - **Quotas**: the limits that "all accounts start with". Source of all: Fireworks' page on rate limits
///   (docs.fireworks.ai/serverless/rate-limits, looked up on 2026-11-25).
pub const FIREWORKS: Profile = Profile::new(
    &hosted("fireworks").urls(&["api.fireworks.ai"]).limits(LimitHeaders::NONE).api(
        Api::bearer(&["FIREWORKS_API_KEY"])
            .origin("https://api.fireworks.ai")
            .openai_path("/inference/v1"),
    ),
);

/// MiniMax, `api.minimax.io` and `api.minimaxi.com`.
///
/// - **Charge** (`Tokens`, the TPM limit): input and output, by usage.
/// - **Limits**: requests and tokens per minute, by model. Its pages name no headers; those of other providers are
///   read.
/// - **Quotas**: of an account that has paid. Source of all: MiniMax' pages on rate limits
///   (platform.minimax.io/docs/guides/rate-limits, platform.minimaxi.com/docs/guides/rate-limits, looked up on
///   2026-11-25).
pub const MINIMAX: Profile = Profile::new(
    &hosted("minimax")
        .urls(&["api.minimax.io", "api.minimaxi.com"])
        .errors(
            ErrorRules::new()
                .account_codes(&["1004", "1008", "2049"])
                .transient_codes(&["1002", "1039", "1041", "2045"]),
        )
        .api(Api::bearer(&["MINIMAX_API_KEY"]).origin("https://api.minimax.io")),
);

/// Baseten, `inference.baseten.co`: its Model APIs.
///
/// - **Charge** (`Tokens`, the TPM limit): input and output, by usage; cached input counts in full.
/// - **Limits**: requests and tokens per minute. Its pages name no headers; those of other providers are read.
/// - **Quotas**: none built in, since other providers have models of the same names. A verified account on the Basic
///   plan has 120 requests and 500,000 tokens per minute. Source of all: Baseten's page on limits
///   (docs.baseten.co/inference/model-apis/pricing-and-limits, looked up on 2026-11-25).
pub const BASETEN: Profile = Profile::new(
    &hosted("baseten")
        .urls(&["inference.baseten.co"])
        .api(Api::bearer(&["BASETEN_API_KEY"]).origin("https://inference.baseten.co")),
);

/// DeepInfra, `api.deepinfra.com`.
///
/// - **Charge**: requests in flight, for each model, not their rate. `Tokens` are the usage.
/// - **Limits**: its page names no headers; those of other providers are read.
/// - **Quotas**: none built in, since other providers have models of the same names. An account has 200 requests in
///   flight for each model. Source of all: DeepInfra's page on rate limits (deepinfra.com/docs/advanced/rate-limits, looked up on 2026-11-25).
pub const DEEPINFRA: Profile = Profile::new(
    &hosted("deepinfra").urls(&["api.deepinfra.com"]).api(
        Api::bearer(&["DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"])
            .origin("https://api.deepinfra.com")
            .endpoint("/v1/openai/chat/completions")
            .openai_path("/v1/openai"),
    ),
);

/// Hyperbolic, `api.hyperbolic.xyz`, serverless.
///
/// - **Charge**: requests per minute; tokens, by usage, have no limit.
/// - **Limits**: its pages name no headers; those of other providers are read.
/// - **Quotas**: none built in, since other providers have models of the same names. The Pro tier, of an account with
///   a deposit of $5, has 600 requests per minute, and 120 of Llama 3.1 405B. Source of all: Hyperbolic's page on limits
///   (docs.hyperbolic.ai/inference/performance-limits, looked up on 2026-11-25).
pub const HYPERBOLIC: Profile = Profile::new(
    &hosted("hyperbolic")
        .urls(&["api.hyperbolic.xyz"])
        .api(Api::bearer(&["HYPERBOLIC_API_KEY"]).origin("https://api.hyperbolic.xyz")),
);

/// Nebius Token Factory, `api.tokenfactory.nebius.com`, formerly AI Studio.
///
/// - **Charge**: requests and tokens per minute, by usage.
/// - **Limits**: adaptive: a limit of which 80 % is used over 15 minutes grows by a fifth, up to 20 times; one of which
///   half is used shrinks by a third. Headers state it: `x-ratelimit-remaining-requests` and `-tokens` are documented,
///   OpenAI's other names are read too.
/// - **Quotas**: none; only the console states them. Source of all: Nebius' page on rate limits
///   (docs.tokenfactory.nebius.com/ai-models-inference/rate-limits, looked up on 2026-11-25).
pub const NEBIUS: Profile = Profile::new(
    &hosted("nebius")
        .urls(&["api.tokenfactory.nebius.com", "api.studio.nebius.com"])
        .api(Api::bearer(&["NEBIUS_API_KEY"]).origin("https://api.tokenfactory.nebius.com")),
);

/// AI21, `api.ai21.com`: the Jamba models.
///
/// - **Charge**: requests per second and per minute; tokens, by usage, have no limit.
/// - **Limits**: its pages name no headers; those of other providers are read.
/// - **Quotas**: of every account. Source of all: AI21's page on rate limits
///   (docs.ai21.com/reference/api-rate-limits, looked up on 2026-11-25).
pub const AI21: Profile = Profile::new(
    &hosted("ai21").urls(&["api.ai21.com"]).api(
        Api::bearer(&["AI21_API_KEY"])
            .origin("https://api.ai21.com")
            .endpoint("/studio/v1/chat/completions")
            .openai_path("/studio/v1"),
    ),
);

/// Alibaba Cloud Model Studio, `dashscope.aliyuncs.com`: the Qwen models.
///
/// - **Charge**: requests and tokens per minute, for each model of an account, by usage.
/// - **Limits**: no headers documented; those of other providers are read. Limits may also be enforced per second, as
///   a sixtieth of those per minute: a limit of a second in a quota spaces the requests. Sudden growth is refused too.
/// - **Errors**: a 429 with the code `insufficient_quota` is that of tokens per minute, and transient; an exhausted
///   free quota is a 403.
/// - **Usage** of a chat's stream is stated with `stream_options.include_usage` only (help.aliyun.com/en/model-studio,
///   "OpenAI compatible").
/// - **Quotas**: none; they differ by model and region. Source of all: Model Studio's pages on rate limits
///   (help.aliyun.com/en/model-studio/rate-limit, docs.qwencloud.com/developer-guides/administration/rate-limits,
///   looked up on 2026-11-25).
pub const DASHSCOPE: Profile = Profile::new(
    &hosted("dashscope")
        .urls(&["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "*.maas.aliyuncs.com"])
        .usage_on_request()
        .errors(ErrorRules::new().transient_codes(&["insufficient_quota"]))
        .api(
            Api::bearer(&["DASHSCOPE_API_KEY"])
                .origin("https://dashscope.aliyuncs.com")
                .endpoint("/compatible-mode/v1/chat/completions")
                .openai_path("/compatible-mode/v1"),
        ),
);

/// SambaNova, `api.sambanova.ai`.
///
/// - **Charge**: requests per minute and per day, for each model; 20 million tokens per day for all models of an
///   account together, by usage.
/// - **Limits**: its headers state requests per minute and, with the suffix `-day`, per day.
/// - **Quotas**: the developer tier, of an account with a payment method, without the tokens per day of all models.
///   Source of all: SambaNova's page on rate limits (docs.sambanova.ai/docs/en/models/rate-limits, looked up on
///   2026-11-25).
pub const SAMBANOVA: Profile = Profile::new(
    &hosted("sambanova")
        .urls(&["api.sambanova.ai"])
        .limits(LimitHeaders::BY_NAME)
        .api(Api::bearer(&["SAMBANOVA_API_KEY"]).origin("https://api.sambanova.ai")),
);

/// The router of Hugging Face, `router.huggingface.co`.
///
/// - **Charge**: by usage, at the provider that it routes to.
/// - **Limits**: no headers seen. **Quotas**: none; spending is limited.
pub const HUGGINGFACE: Profile = Profile::new(
    &hosted("huggingface")
        .urls(&["router.huggingface.co", "api-inference.huggingface.co"])
        .api(Api::bearer(&["HF_TOKEN"]).origin("https://router.huggingface.co")),
);

/// Writer, `api.writer.com`.
///
/// - **Charge**: requests and tokens per minute, by usage.
/// - **Limits**: no headers seen. **Quotas**: of every account without limits of its own; the page doesn't say whether
///   models have limits of their own, so that they share these. Source: Writer's page on rate limits
///   (dev.writer.com/api-reference/rate-limits, looked up on 2026-11-25).
pub const WRITER: Profile =
    Profile::new(&hosted("writer").urls(&["api.writer.com"]).api(
        Api::bearer(&["WRITER_API_KEY"]).origin("https://api.writer.com").endpoint("/v1/chat"),
    ));

/// Voyage, `api.voyageai.com`: embeddings and rerankings.
///
/// - **Charge**: requests and tokens per minute, by usage, which states only a total.
/// - **Limits**: no headers seen. **Quotas**: tier 1, of an account with a payment method. Source: Voyage's page on
///   rate limits (docs.voyageai.com/docs/rate-limits, looked up on 2026-11-25).
pub const VOYAGE: Profile = Profile::new(&hosted("voyage").urls(&["api.voyageai.com"]).api(
    Api::bearer(&["VOYAGE_API_KEY"]).origin("https://api.voyageai.com").endpoint("/v1/embeddings"),
));

/// OpenRouter, `openrouter.ai`.
///
/// - **Charge**: by usage. Requests to models whose name ends in `:free` are limited together, failed
///   ones included; others by the provider behind them.
/// - **Failures** are not billed (openrouter.ai/docs/features/zero-completion-insurance, read in November 2026).
/// - **Limits**: only its own refusals have headers.
/// - **Quotas**: for `:free`, 20 requests per minute and 50 per UTC day; 1,000 per day for an account that
///   has bought 10 credits. Source: OpenRouter's page on limits.
pub const OPENROUTER: Profile = Profile::new(
    &hosted("openrouter")
        .urls(&["openrouter.ai"])
        .limits(LimitHeaders::OPENROUTER)
        .errors(ErrorRules::new().unbilled_failures().days_reset_in("UTC"))
        .routing_by_list()
        .api(
            Api::bearer(&["OPENROUTER_API_KEY"])
                .origin("https://openrouter.ai")
                .openai_path("/api/v1"),
        ),
);

/// Z.ai and Zhipu, `api.z.ai` and `open.bigmodel.cn`: the GLM models.
///
/// - **Charge**: requests in flight are limited for each model, and the rate of requests; `Tokens` are the usage.
/// - **Limits**: its pages name no headers; those of other providers are read.
/// - **Refusals** state a code of four digits and words: no balance (1113), a window of five hours (1308), a week or a
///   month (1310) with the time of its reset, which is read as UTC in English and as China's in Chinese, overload (1305, 1312).
/// - **Quotas**: none; they differ by account. Source of all: the page on error codes (docs.z.ai/api-reference/api-code,
///   docs.bigmodel.cn/cn/api/api-code, looked up on 2026-11-27).
pub const ZAI: Profile = Profile::new(
    &hosted("zai")
        .urls(&["api.z.ai", "open.bigmodel.cn"])
        .errors(
            ErrorRules::new()
                .account_codes(&[
                    "1000", "1001", "1002", "1003", "1004", "1110", "1111", "1112", "1113", "1121",
                    "1309",
                ])
                .request_codes(&["1261"]),
        )
        .api(
            Api::bearer(&["ZAI_API_KEY", "ZHIPUAI_API_KEY"])
                .origin("https://api.z.ai")
                .endpoint("/api/paas/v4/chat/completions")
                .openai_path("/api/paas/v4"),
        ),
);

/// Volcengine Ark and BytePlus ModelArk, `ark.cn-beijing.volces.com` and `ark.ap-southeast.bytepluses.com`: the Doubao
/// models.
///
/// - **Charge**: requests and tokens per minute, for each model of an account, and for each endpoint, by usage.
/// - **Limits**: its pages name no headers; those of other providers are read.
/// - **Refusals** name the limit in their code: `ModelAccountTpmRateLimitExceeded`, `AccountOverdueError`,
///   `ServerOverloaded`.
/// - **Quotas**: none; they differ by account. Source of all: the page on error codes (volcengine.com/docs/82379/1299023,
///   looked up on 2026-11-27).
pub const ARK: Profile = Profile::new(
    &hosted("ark").urls(&["ark.*.volces.com", "ark.*.bytepluses.com"]).api(
        Api::bearer(&["ARK_API_KEY"])
            .origin("https://ark.cn-beijing.volces.com")
            .endpoint("/api/v3/chat/completions")
            .openai_path("/api/v3"),
    ),
);

/// GitHub Models, `models.github.ai`.
///
/// - **Charge**: requests per minute and per day and requests in flight, for each model and user; tokens, by usage, are
///   limited for each request only.
/// - **Limits**: no headers of what is left. **Refusals** name the limit: "Rate limit of 50 per 86400s exceeded for
///   UserByModelByDay", with `retry-after` and `x-ratelimit-timeremaining` (reports in public issues).
/// - **Quotas**: none; they differ by model and subscription.
pub const GITHUB_MODELS: Profile = Profile::new(
    &hosted("github-models").urls(&["models.github.ai", "models.inference.ai.azure.com"]).api(
        Api::bearer(&["GITHUB_TOKEN"])
            .origin("https://models.github.ai")
            .endpoint("/inference/chat/completions")
            .openai_path("/inference"),
    ),
);

/// NVIDIA's hosted NIM, `integrate.api.nvidia.com`.
///
/// - **Charge**: requests per minute; tokens, by usage, have no known limit.
/// - **Limits**: no headers known. **Refusals** state the status only, `{"status": 429, "title": "Too Many Requests"}`
///   (reports in public issues).
/// - **Quotas**: none; NVIDIA publishes no numbers (build.nvidia.com).
pub const NVIDIA: Profile = Profile::new(
    &hosted("nvidia")
        .urls(&["integrate.api.nvidia.com"])
        .api(Api::bearer(&["NVIDIA_API_KEY"]).origin("https://integrate.api.nvidia.com")),
);

/// Ollama Cloud, `ollama.com`: the models that Ollama runs, with its native and OpenAI's format.
///
/// - **Charge**: use by its own measure, in windows of hours and weeks, and models in flight; `Tokens` are the usage.
/// - **Limits**: no headers known. **Refusals** name the window: "weekly usage limit" (reports in public issues).
/// - **Quotas**: none; no numbers are published (docs.ollama.com/cloud).
pub const OLLAMA_CLOUD: Profile = Profile::new(
    &hosted("ollama-cloud")
        .unifying_models()
        .urls(&["ollama.com"])
        .api(Api::bearer(&["OLLAMA_API_KEY"]).origin("https://ollama.com")),
);

const fn hosted(name: &'static str) -> Rules {
    Rules::built_in(name).weights(PromptWeights::OPEN_MODELS)
}

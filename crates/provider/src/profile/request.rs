use http::{HeaderMap, Method};
use paceline_limiter::quota::{Cost, Key};

use super::Profile;
use crate::request::{
    Request, UnreadableRequest, documented_default, missing_model, runs_named_model,
};
use crate::{COMPATIBLE, COMPATIBLE_USAGE, Estimate, Unit, free_path, model_name};

/// Reads requests.
impl Profile {
    /// Reads the model and the cost of a request from its path, or whole URL, and its whole body.
    pub fn read_request(&self, path: &str, body: &[u8]) -> Estimate {
        match Request::read(path, body) {
            Ok(mut request) => {
                // A client's own request is sent in any case.
                let _ = self.use_default_model(&mut request, path, None);
                self.estimate(request, path, body)
            }
            Err(_) => self.of_form(Request::estimate_unread(path, body), path, body),
        }
    }

    /// Estimates a request whose body isn't in memory, by its size in bytes and the model in its path.
    pub fn read_head(&self, path: &str, size: u64) -> Estimate {
        self.with_unified_model(Request::estimate_of_size(path, size, None))
    }

    /// Returns true if the provider is known not to bill a request: its path and method are on the list of
    /// [`Rules::free`](crate::Rules::free), and it has no body unless the method is one that needs it.
    ///
    /// ```
    /// use http::Method;
    /// use paceline_provider::OPENAI;
    /// assert!(OPENAI.is_free(&Method::GET, "/v1/models", false));
    /// assert!(OPENAI.is_free(&Method::POST, "/v1/batches/batch_1/cancel", true));
    /// assert!(!OPENAI.is_free(&Method::POST, "/v1/batches", true));
    /// ```
    pub fn is_free(&self, method: &Method, path: &str, has_body: bool) -> bool {
        // Of a server that is only like a provider, less is known.
        let is_named = self.alias.is_none() && self.rules.base.is_none();
        let reads_are_free = is_named && ![COMPATIBLE, COMPATIBLE_USAGE].contains(self);
        free_path::is_free(self.rules.free, reads_are_free, method, path, has_body)
    }

    /// Returns true if streams of chats have a usage only if the request sets `stream_options.include_usage`, and
    /// the provider accepts that in a request with this query. Azure refuses it in API versions before
    /// `2024-09-01-preview`.
    pub fn states_usage_on_request(&self, query: Option<&str>) -> bool {
        let mut parameters = query.unwrap_or_default().split('&');
        let version = parameters.find_map(|parameter| parameter.strip_prefix("api-version="));
        self.rules.usage_on_request && version.is_none_or(|version| version >= "2024-09-01")
    }

    /// Reads a request as [`read_request`](Self::read_request) does, and returns the reason if two
    /// servers might find different models or sizes in it. For servers that charge the requests of
    /// their clients.
    ///
    /// Supported bodies are JSON objects (RFC 8259) in UTF-8, forms (RFC 7578) and URL-encoded pairs,
    /// uncompressed.
    /// The model is that of the path, else the field `model` or `model_id` at the root, which must not
    /// occur with different values. If neither names one on a path that is known to run a model, it is the default
    /// that the provider documents for the path, else that is a reason too. A prompt that the provider keeps has a
    /// model of its own. Paths whose requests have no model, such as those of files, are never refused.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use paceline_provider::OPENAI;
    /// let read = |body: &str| {
    ///     OPENAI.read_request_strictly("/v1/responses", &HeaderMap::new(), body.as_bytes())
    /// };
    /// let (estimate, unreadable) = read(r#"{"model": "gpt-4o", "input": "Hi"}"#);
    /// assert_eq!((estimate.model.as_deref(), unreadable), (Some("gpt-4o"), None));
    /// let (_, unreadable) = read(r#"{"model": "gpt-4o", "model": "gpt-4o-mini"}"#);
    /// assert_eq!(unreadable.unwrap().part(), "model");
    /// ```
    pub fn read_request_strictly(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> (Estimate, Option<UnreadableRequest>) {
        self.read_request_of(path, headers, body, None)
    }

    /// Reads a request as [`read_request_strictly`](Self::read_request_strictly) does, from a server whose requests
    /// without a model run `default_model`.
    pub(crate) fn read_request_of(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
        default_model: Option<&str>,
    ) -> (Estimate, Option<UnreadableRequest>) {
        match Request::read(path, body) {
            Ok(mut request) => {
                let ambiguity = request.ambiguity(path, headers, body);
                let missing = self.use_default_model(&mut request, path, default_model).err();
                (self.estimate(request, path, body), ambiguity.or(missing))
            }
            Err(json) => {
                let (mut estimate, unreadable) = Request::estimate_form(path, headers, body, json);
                let mut missing = None;
                if estimate.model.is_none() && runs_named_model(path) {
                    estimate.model = self.default_model(path, default_model).map(Key::from);
                    missing = estimate.model.is_none().then(missing_model);
                }
                (self.of_form(estimate, path, body), unreadable.or(missing))
            }
        }
    }

    /// Sets the model of a request that names none: the default of the provider, else of its server.
    fn use_default_model(
        &self,
        request: &mut Request,
        path: &str,
        default_model: Option<&str>,
    ) -> Result<(), UnreadableRequest> {
        if request.model.is_some() {
            return Ok(());
        }
        let default = self.default_model(path, default_model);
        request.use_default_model(path, self.rules.routes_by_list, default)
    }

    /// Returns the model of requests that name none: the provider's documented one, else that of the server.
    fn default_model<'m>(&self, path: &str, of_server: Option<&'m str>) -> Option<&'m str> {
        documented_default(self.rules.default_models, path).or(of_server)
    }

    fn estimate(&self, mut request: Request, path: &str, body: &[u8]) -> Estimate {
        if let Some(vocabularies) = self.vocabularies {
            request = request.count_texts(body, vocabularies);
        }
        request.on_path_of_model(|| path.trim_end_matches('/').ends_with(self.api().endpoint));
        let mut reserved = self.rules.charge.reserve(&request, &self.rules.weights);
        self.add_units(&mut reserved.cost, |unit| request.amount(unit, path));
        let mode = self.rules.modes.iter().find(|mode| mode.is_named(&request.modes));
        let mode = mode.map(|mode| mode.name);
        let is_charged_as_received = self.rules.cut_streams.is_charged_as_received(&request);
        if request.embeds_list(path) {
            let contents = request.amount(Unit::Inputs, path).unwrap_or(1);
            reserved.cost = reserved.cost.requests(contents);
        }
        let cached = self.rules.charge.cached_prompt(|| marks_cache(body));
        reserved.cost = cached.guess(reserved.cost, false);
        let counts_tokens = request.counts_tokens(path);
        let estimate = Estimate {
            mode,
            is_charged_as_received,
            cached,
            ..request.into_estimate(reserved, &self.rules.weights)
        };
        let estimate = if counts_tokens { estimate.of_token_count() } else { estimate };
        self.with_unified_model(estimate)
    }

    /// Returns the estimate of a request that may be a form, with the amounts of the provider's units in it.
    fn of_form(&self, mut estimate: Estimate, path: &str, body: &[u8]) -> Estimate {
        self.add_units(&mut estimate.cost, |unit| Request::amount_in_form(unit, path, body));
        self.with_unified_model(estimate)
    }

    /// Returns true if the provider has several names for one model.
    pub(crate) fn unifies_models(&self) -> bool {
        self.rules.unifies_models
    }

    fn with_unified_model(&self, mut estimate: Estimate) -> Estimate {
        if self.rules.unifies_models
            && let Some(model) = estimate.model.as_deref().and_then(model_name::unified)
        {
            estimate.model = Some(model);
        }
        estimate
    }

    fn add_units(&self, cost: &mut Cost, amount: impl Fn(Unit) -> Option<u64>) {
        for unit in self.rules.units {
            if let Some(amount) = amount(*unit) {
                paceline_limiter::seam::set_optional(cost, unit.as_str(), amount);
            }
        }
    }
}

/// Returns whether a request marks a part of its prompt that the provider keeps in a cache: Anthropic's, and Bedrock's.
/// In a text the quotes would be escaped.
fn marks_cache(body: &[u8]) -> bool {
    let marks = [&b"\"cache_control\""[..], b"\"cachePoint\""];
    marks.into_iter().any(|mark| memchr::memmem::find(body, mark).is_some())
}

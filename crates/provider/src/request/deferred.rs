/// The tools that a request to OpenAI's Responses loads in the course of a conversation.
///
/// A model is shown the name and the description of a deferred function, and its parameters once a tool search has
/// found it (developers.openai.com/api/docs/guides/tools-tool-search, read on 2026-11-25). Recorded: 18 prompts, of
/// which one is a search that OpenAI runs itself in a second prompt, of which the request says nothing.
#[derive(Debug, Default)]
pub(super) struct DeferredTools {
    /// Functions with `defer_loading`, and the tokens of their names and descriptions.
    pub(super) functions: u64,
    listed: u64,
    /// Functions in lists of loaded tools, and those lists.
    loaded: u64,
    lists: u64,
    /// Tool searches that OpenAI runs itself, and those that the client runs.
    hosted_searches: u64,
    client_searches: u64,
}

impl DeferredTools {
    /// Adds a deferred function, whose name and description have this many tokens.
    pub(super) fn add_deferred(&mut self, listed: u64) {
        self.functions += 1;
        self.listed = self.listed.saturating_add(listed);
    }

    pub(super) fn add_loaded(&mut self) {
        self.loaded += 1;
    }

    pub(super) fn add_list(&mut self) {
        self.lists += 1;
    }

    /// Adds a tool search that the client runs, which has a definition.
    pub(super) fn add_client_search(&mut self) {
        self.client_searches += 1;
    }

    /// Adds a tool search that OpenAI runs itself, which has no definition.
    pub(super) fn add_hosted_search(&mut self) {
        self.hosted_searches += 1;
    }

    /// Returns the tokens beside the definitions of loaded functions. Once all functions are loaded, the model isn't
    /// shown what to search (recorded: 7 prompts).
    pub(super) fn tokens(&self) -> u64 {
        let lists = self.lists.saturating_mul(PER_LIST);
        if self.functions <= self.loaded {
            return lists;
        }
        let searches = self.hosted_searches.saturating_mul(PER_HOSTED_SEARCH)
            + self.client_searches.saturating_mul(PER_CLIENT_SEARCH);
        lists.saturating_add(searches).saturating_add(self.listed)
    }
}

/// The tokens of a list of loaded tools, in `additional_tools` or `tool_search_output` (recorded: 82 to 97, 14
/// prompts).
const PER_LIST: u64 = 90;

/// The tokens that explain a tool search that OpenAI runs itself (recorded: about 350 to 370, 4 prompts).
const PER_HOSTED_SEARCH: u64 = 363;

/// The tokens of a tool search that the client runs, beside its definition (recorded: 20 to 32, 2 prompts).
const PER_CLIENT_SEARCH: u64 = 25;

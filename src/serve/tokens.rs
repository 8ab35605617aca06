use std::fmt;

/// What clients have to show.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Tokens {
    /// Who has it may ask; `None` lets anybody.
    pub client: Option<String>,
    /// Who has it may change quotas, reset keys and look at them.
    pub admin: Option<String>,
}

impl fmt::Debug for Tokens {
    /// Without the tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("client", &self.client.is_some())
            .field("admin", &self.admin.is_some())
            .finish()
    }
}

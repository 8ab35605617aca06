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

impl Tokens {
    /// Those of this process's environment: `TOLLGATE_TOKEN`, `TOLLGATE_ADMIN_TOKEN`. An empty one is
    /// none.
    pub fn from_environment() -> Self {
        let token = |name| std::env::var(name).ok();
        Self { client: token("TOLLGATE_TOKEN"), admin: token("TOLLGATE_ADMIN_TOKEN") }.meant()
    }

    /// Without the space around them that comes out of files; an empty one is none.
    pub(super) fn meant(self) -> Self {
        let meant = |token: Option<String>| {
            token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
        };
        Self { client: meant(self.client), admin: meant(self.admin) }
    }
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

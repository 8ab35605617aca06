use std::env::{self, VarError};
use std::fmt;

use super::error::ServeError;

/// The tokens that requests are checked against.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Tokens {
    /// The client token; `None` admits requests without a token.
    pub client: Option<String>,
    /// The admin token, for changing quotas, resetting keys and reading keys.
    pub admin: Option<String>,
}

impl Tokens {
    /// Reads `PACELINE_TOKEN` and `PACELINE_ADMIN_TOKEN` from the environment. An empty token counts as
    /// none.
    ///
    /// # Errors
    /// [`ServeError::InvalidVariable`] for a token that isn't UTF-8. It doesn't count as none, which would let in
    /// everybody.
    pub fn from_environment() -> Result<Self, ServeError> {
        let token = |variable| match env::var(variable) {
            Ok(token) => Ok(Some(token)),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(ServeError::InvalidVariable { variable }),
        };
        let (client, admin) = (token("PACELINE_TOKEN")?, token("PACELINE_ADMIN_TOKEN")?);
        Ok(Self { client, admin }.normalized())
    }

    /// Trims white space, which files often end with; an empty token counts as none.
    pub(super) fn normalized(self) -> Self {
        let normalize = |token: Option<String>| {
            token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
        };
        Self { client: normalize(self.client), admin: normalize(self.admin) }
    }
}

impl fmt::Debug for Tokens {
    /// Omits the tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("client", &self.client.is_some())
            .field("admin", &self.admin.is_some())
            .finish()
    }
}

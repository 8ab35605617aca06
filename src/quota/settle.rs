/// When the provider's count of a dimension becomes final, so that the reservation can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettleAt {
    /// The charge is known before the request is sent: it is taken at once and nothing is held.
    Send,
    /// At the first usage that the response reports, or at its end.
    FirstUsage,
    /// At the end of the response.
    End,
}

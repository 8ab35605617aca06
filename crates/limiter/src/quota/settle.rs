/// The time at which the provider's charge in a dimension is final, so that the reservation can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettleAt {
    /// Before the request is sent: the charge is known and taken at admission, and no amount is held.
    Send,
    /// At the first usage that the response reports, or at its end.
    FirstUsage,
    /// At the end of the response.
    End,
}

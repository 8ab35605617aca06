use super::permit::Permit;
use crate::timestamp::Timestamp;

/// The reference of a [`Permit`] that holds nothing until it ends. It is small enough to pass to a client,
/// which can return the quota later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The time at which the permit was granted.
    pub granted_at: Timestamp,
    /// The version of its key's limits at that time.
    pub version: u32,
    /// A number that distinguishes the state of the key from all others, including later ones of the same
    /// key.
    pub entry: u32,
}

impl Permit {
    /// Detaches a permit: its usage stays charged, and can be returned only with the ticket
    /// ([`return_ticket`](crate::seam::return_ticket)).
    ///
    /// ```
    /// use paceline_limiter::{Cost, Limiter, Quota, seam};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let ticket = limiter.try_acquire("k", &Cost::new()).unwrap().into_ticket().unwrap();
    /// assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    /// assert!(seam::return_ticket(&limiter, "k", &Cost::new(), ticket));
    /// assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the permit if the limiter has something to do when it ends: the permit holds an amount
    /// (requests in flight, tokens that are charged at the end), has several keys, or a
    /// [`Backend`](super::Backend) keeps its limits.
    pub fn into_ticket(self) -> Result<Ticket, Self> {
        if !self.is_closed_and_single() {
            return Err(self);
        }
        let (entry, version) = self.first();
        Ok(Ticket { granted_at: self.granted_at(), version, entry: entry.id })
    }
}

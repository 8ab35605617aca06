use super::permit::Permit;
use crate::timestamp::Timestamp;

/// What is left of a [`Permit`] that keeps nothing until it ends: enough to give back what it took,
/// later, and small enough to be handed to whoever may ask for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// When the permit was granted.
    pub granted_at: Timestamp,
    /// The version of its key's limits at that time.
    pub version: u32,
    /// A number that tells the state of its key from others, and from a later one of the same key.
    pub entry: u32,
}

impl Permit {
    /// Lets go of a permit: what it took stays taken, and only who shows the ticket can
    /// [give it back](super::LimiterState::give_back).
    ///
    /// ```
    /// use tollgate::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let ticket = limiter.try_acquire("k", &Cost::new()).unwrap().into_ticket().unwrap();
    /// assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    /// assert!(limiter.state().give_back("k", &Cost::new(), ticket));
    /// assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// The permit, where the limiter has something to do when it ends: it holds something (requests in
    /// flight, tokens that are charged at the end), is one of several keys, or its limits are kept by a
    /// [`Backend`](super::Backend).
    pub fn into_ticket(self) -> Result<Ticket, Self> {
        if !self.is_closed_and_single() {
            return Err(self);
        }
        let (entry, version) = self.first();
        Ok(Ticket { granted_at: self.granted_at(), version, entry: entry.id })
    }
}

use serde::{Deserialize, Serialize};

/// The precision with which a shared limit is enforced across machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "yaml", derive(schemars::JsonSchema), schemars(rename = "ClusterMode"))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SharingMode {
    /// The store decides every request atomically.
    #[default]
    Exact,
    /// Each process leases a part of the available amount for a short time, and decides within it without
    /// asking the store.
    ///
    /// A lease is as large as the process's use in one lease time, and at most its share of the available
    /// amount among all live members. A process renews it every third of its time, and returns the part
    /// that it doesn't use.
    ///
    /// - *Limit.* Leases never exceed the limit. The store holds leased amounts, so no other process can
    ///   take them, while the bucket refills as if nothing had been taken. Usage is taken when it is
    ///   reported, never before it happened, so the store counts at least the usage at every moment. A
    ///   process stops using a lease before the store ends it: its time runs from the request for it, on
    ///   the clock of the process, and is a sixteenth shorter. This needs clocks that run at the same
    ///   rate, not clocks that agree; the clock of a suspended machine stops.
    /// - *Cost.* In a window, usage counts until a window's length after it was reported: at most a third
    ///   of the lease time later, while the store responds. Other processes wait up to one lease time for
    ///   what a process holds and doesn't use. The lease of a process that was killed counts as used one
    ///   lease time after its last request. An amount that is charged when the request is sent stays
    ///   counted if the request turns out to be smaller, or to have never left, after it was reported.
    /// - *Order.* Requests that find no capacity in a lease are decided by the store, as in
    ///   [`Exact`](Self::Exact), in order of arrival among all processes. Leases don't take the amounts
    ///   that are reserved for waiting requests.
    ///
    /// Keys with a limit of requests in flight, or with a window that starts at its first use, stay exact,
    /// as does a request with several keys if one of them does.
    #[cfg_attr(
        feature = "yaml",
        schemars(
            description = "Each machine leases a part of the limit for a short time, and decides within it without asking the server."
        )
    )]
    Lease,
}

use serde::{Deserialize, Serialize};

/// The precision with which a shared limit is enforced across machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ClusterMode"))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SharingMode {
    /// The store decides every request atomically.
    #[default]
    Exact,
    /// Each process leases a part of the available amount for a short time, and decides about requests
    /// within that part without a call to the store.
    ///
    /// A lease covers the process's demand for one lease duration, and at most its equal share of the
    /// available amount among all live members. The process renews the lease three times per lease
    /// duration, and returns the part that it doesn't use.
    ///
    /// - *Limit.* Leases never exceed the limit. The store holds leased amounts, so no other process can
    ///   take them, while the bucket refills as if nothing had been taken. Usage is charged when it is
    ///   reported, never before it happened, so the store never counts less than the actual usage. A
    ///   process stops using a lease before it expires in the store: the process measures the lease
    ///   duration from the time of its request, by its own clock, and shortens it by a sixteenth. Clocks
    ///   must run at the same rate, but need not show the same time; the clock of a suspended machine
    ///   stops.
    /// - *Cost.* In a window, usage counts until one window after it was reported, which is at most a third
    ///   of the lease duration later while the store responds. Other processes wait up to one lease
    ///   duration for an amount that a process holds but doesn't use. The lease of a killed process
    ///   counts as used one lease duration after its last request. An amount that is charged when the
    ///   request is sent is not refunded once it was reported, even if the request used less or was
    ///   never sent.
    /// - *Order.* Requests that find no capacity in a lease are decided by the store, as in
    ///   [`Exact`](Self::Exact), in order of arrival among all processes. Leases don't take the amounts
    ///   that are reserved for waiting requests.
    ///
    /// Keys with a limit on requests in flight, or with a window that starts at its first use, stay exact.
    /// A request under several keys stays exact if one of its keys does.
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "Each machine leases a part of the limit for a short time, and decides within it without asking the server."
        )
    )]
    Lease,
}

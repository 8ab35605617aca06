/// How exactly a shared limit is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// One atomic decision of the store for each request.
    #[default]
    Exact,
    /// Each process holds a part of what is available for a short while (a lease), and decides within
    /// it by itself, without asking the store: as much as it takes in a lease time, and at most its
    /// share of what is there among all live members. It renews a lease every third of its time,
    /// and gives back what it doesn't use.
    ///
    /// - *Never more than the limit.* The store holds what is leased: nobody else can have it, and the
    ///   bucket goes on as if nothing had been taken. What was used is taken when it is told, never
    ///   before it was used, so that what the store counts is at least what was used, at every
    ///   moment. A process stops using a lease before the store gives it up: its time runs from when
    ///   it *asked*, by its own clock, and is a sixteenth shorter. This needs clocks that run, not
    ///   clocks that agree; a machine that is put to sleep and wakes up has one that stood still.
    /// - *The price.* In a window, what was used counts until a window's length after it was told: a
    ///   third of the lease time later at most, while the store answers. What one process holds and
    ///   doesn't use, others have to wait for, for a lease time at most. A process that is killed
    ///   leaves what it held, which counts as used a lease time after it last asked. What is charged
    ///   when it is sent, and turns out to be less or to have never left after it was told, stays
    ///   counted.
    /// - *The order.* Who finds no room is decided by the store like everybody in
    ///   [`Exact`](Self::Exact), in order of arrival among all processes; leases take nothing that
    ///   is kept for those who wait.
    ///
    /// Keys with a limit on requests in flight, or a window that starts at its first use, stay exact,
    /// and so does a request under several keys of which one does.
    Lease,
}

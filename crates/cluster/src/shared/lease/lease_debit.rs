/// The record of an amount taken from a lease: the generation of the lease, and the call that last
/// reported usage before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseDebit {
    pub(super) generation: u32,
    pub(super) first_report: u32,
}

impl LeaseDebit {
    /// Packs the debit into a nonzero number.
    pub(super) fn pack(self) -> u64 {
        (u64::from(self.generation) << 32 | u64::from(self.first_report)).wrapping_add(1).max(1)
    }

    pub(super) fn unpack(packed: u64) -> Option<Self> {
        let number = packed.checked_sub(1)?;
        let (generation, first_report) =
            ((number >> 32) as u32, (number & u64::from(u32::MAX)) as u32);
        Some(Self { generation, first_report })
    }
}

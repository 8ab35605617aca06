/// What a request has taken of a ledger: under which lease, and after which question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster::shared) struct Taken {
    pub(super) lease: u32,
    pub(super) told: u32,
}

impl Taken {
    /// As a number that isn't 0.
    pub(super) fn pack(self) -> u64 {
        (u64::from(self.lease) << 32 | u64::from(self.told)).wrapping_add(1).max(1)
    }

    pub(super) fn unpack(packed: u64) -> Option<Self> {
        let number = packed.checked_sub(1)?;
        let (lease, told) = ((number >> 32) as u32, (number & u64::from(u32::MAX)) as u32);
        Some(Self { lease, told })
    }
}

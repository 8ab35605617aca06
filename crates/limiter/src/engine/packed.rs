use crate::timestamp::Timestamp;

/// A `u64` with an alignment of 4, so that a bucket and its tag fit into 24 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Packed {
    low: u32,
    high: u32,
}

impl Packed {
    #[inline]
    pub(super) const fn value(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }

    #[inline]
    pub(super) const fn time(self) -> Timestamp {
        Timestamp::from_nanos(self.value())
    }
}

impl From<u64> for Packed {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "each half keeps its own 32 bits")]
    fn from(value: u64) -> Self {
        Self { low: value as u32, high: (value >> 32) as u32 }
    }
}

impl From<Timestamp> for Packed {
    #[inline]
    fn from(time: Timestamp) -> Self {
        time.as_nanos().into()
    }
}

impl core::fmt::Debug for Packed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.value().fmt(f)
    }
}

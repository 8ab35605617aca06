/// The beginning of the body of a response that failed, up to [`LONGEST_ERROR`].
#[derive(Default)]
pub(super) struct ErrorBody(Vec<u8>);

impl ErrorBody {
    /// Adds the next bytes of the body.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let remaining = LONGEST_ERROR.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..remaining.min(bytes.len())]);
    }

    /// Returns `true` if no more bytes are kept.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= LONGEST_ERROR
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The maximum number of bytes to read of an error body.
pub(super) const LONGEST_ERROR: usize = 16 * 1_024;

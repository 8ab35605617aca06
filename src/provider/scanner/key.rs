/// A key, as far as it can be a wanted one.
#[derive(Default)]
pub(super) struct Key {
    text: [u8; LONGEST_KEY],
    /// Beyond the bound where the key is too long, or has an escape.
    len: usize,
}

impl Key {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.text.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.len = end;
    }

    pub(super) fn spoil(&mut self) {
        self.len = usize::MAX;
    }

    /// The whole key, given its last piece; that is borrowed where it is the only one.
    pub(super) fn complete<'k>(&'k mut self, last: &'k [u8]) -> Option<&'k [u8]> {
        if self.len == 0 {
            return Some(last);
        }
        self.push(last);
        self.text.get(..self.len)
    }
}

/// No wanted key is longer, in bytes.
pub(super) const LONGEST_KEY: usize = 32;

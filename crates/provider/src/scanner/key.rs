use super::response_field::MAX_KEY;

/// A key of an object, up to the length of the longest that is looked for.
#[derive(Default)]
pub(super) struct Key {
    text: [u8; MAX_KEY],
    /// Exceeds the bound if the key is too long or has an escape.
    len: usize,
}

impl Key {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(free) = self.text.get_mut(self.len..end) {
            free.copy_from_slice(bytes);
        }
        self.len = end;
    }

    /// Marks the key as one that no field has.
    pub(super) fn set_unknown(&mut self) {
        self.len = usize::MAX;
    }

    /// Returns the whole key, given its last part, which is borrowed if it is the only one. Returns `None`
    /// if no field has this key.
    pub(super) fn complete<'k>(&'k mut self, last: &'k [u8]) -> Option<&'k [u8]> {
        if self.len == 0 {
            return Some(last);
        }
        self.push(last);
        self.text.get(..self.len)
    }
}

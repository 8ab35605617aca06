use std::sync::OnceLock;

/// A list of distinct values that live as long as the process.
///
/// The list only grows, and takes no lock. Profiles can therefore be copied freely, and reading a
/// configuration again adds nothing.
pub(super) struct Interned<T> {
    first: OnceLock<Box<Node<T>>>,
}

struct Node<T> {
    value: T,
    next: OnceLock<Box<Self>>,
}

impl<T> Interned<T> {
    pub(super) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Returns the first value that matches, after adding a new one if none does.
    pub(super) fn find_or_add(
        &'static self,
        matches: impl Fn(&T) -> bool,
        new: impl Fn() -> T,
    ) -> &'static T {
        let mut next = &self.first;
        loop {
            let node = next.get_or_init(|| Box::new(Node { value: new(), next: OnceLock::new() }));
            if matches(&node.value) {
                return &node.value;
            }
            next = &node.next;
        }
    }
}

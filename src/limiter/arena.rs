use std::ops::{Index, IndexMut};

/// Items by number, in blocks: growing moves none of them and wastes at most one block.
#[derive(Debug)]
pub(super) struct Arena<T> {
    blocks: Vec<Vec<T>>,
}

impl<T> Arena<T> {
    pub(super) const fn new() -> Self {
        Self { blocks: Vec::new() }
    }

    /// Adds an item and says its number.
    pub(super) fn push(&mut self, item: T) -> u32 {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            // The first block starts small: most limiters know a handful of keys.
            let capacity = if self.blocks.is_empty() { 0 } else { BLOCK };
            self.blocks.push(Vec::with_capacity(capacity));
        }
        let number = self.len();
        self.blocks.last_mut().expect("was made above").push(item);
        u32::try_from(number).expect("fewer than 2^32 keys in a shard")
    }

    /// How many there are: every number below is one's.
    pub(super) fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1);
        full * BLOCK + self.blocks.last().map_or(0, Vec::len)
    }
}

impl<T> Index<u32> for Arena<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        let number = number as usize;
        &self.blocks[number / BLOCK][number % BLOCK]
    }
}

impl<T> IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        let number = number as usize;
        &mut self.blocks[number / BLOCK][number % BLOCK]
    }
}

const BLOCK: usize = 128;

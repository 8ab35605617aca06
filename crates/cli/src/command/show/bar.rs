use std::fmt;

/// The usage of a limit as a bar: `#` used, `=` reserved, `-` available.
///
/// Any usage or reservation fills at least one cell, and only a reached limit fills all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bar {
    used: usize,
    held: usize,
    cells: usize,
}

impl Bar {
    /// Returns a bar of this width, including its two ends.
    pub(super) fn new(used: u64, held: u64, limit: u64, width: usize) -> Self {
        let cells = width.saturating_sub(2);
        let (some_used, some_held) = (usize::from(used > 0), usize::from(held > 0));
        let taken = fill(used.saturating_add(held), limit, cells);
        let taken = taken.max(some_used + some_held).min(cells);
        let used = fill(used, limit, cells).min(taken.saturating_sub(some_held));
        Self { used, held: taken - used, cells }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { used, held, cells } = *self;
        let rest = cells - used - held;
        write!(f, "[{}{}{}]", "#".repeat(used), "=".repeat(held), "-".repeat(rest))
    }
}

/// Returns the number of cells of an amount.
fn fill(amount: u64, limit: u64, cells: usize) -> usize {
    if amount >= limit {
        return if amount == 0 { 0 } else { cells };
    }
    let exact = u128::from(amount) * cells as u128 / u128::from(limit);
    let most = cells.saturating_sub(1).max(usize::from(cells > 0));
    usize::try_from(exact).unwrap_or(cells).clamp(usize::from(amount > 0).min(cells), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_shows_used_held_and_available() {
        let table = [
            (0, 0, 10, "[----------]"),
            (5, 0, 10, "[#####-----]"),
            (5, 3, 10, "[#####===--]"),
            (10, 0, 10, "[##########]"),
            (10, 5, 10, "[#########=]"),
            (8, 9, 10, "[########==]"),
            (25, 0, 10, "[##########]"),
            (0, 10, 10, "[==========]"),
            (0, 0, 0, "[----------]"),
            (u64::MAX, u64::MAX, u64::MAX, "[#########=]"),
        ];
        for (used, held, limit, bar) in table {
            assert_eq!(Bar::new(used, held, limit, 12).to_string(), bar, "{used} {held} {limit}");
        }
    }

    #[test]
    fn small_usage_fills_one_cell_and_full_bar_means_limit() {
        assert_eq!(Bar::new(1, 0, 1_000_000, 12).to_string(), "[#---------]");
        assert_eq!(Bar::new(1, 1, 1_000_000, 12).to_string(), "[#=--------]");
        assert_eq!(Bar::new(500_000, 1, 1_000_000, 12).to_string(), "[####=-----]");
        assert_eq!(Bar::new(999_999, 0, 1_000_000, 12).to_string(), "[#########-]");
        assert_eq!(Bar::new(u64::MAX - 1, 0, u64::MAX, 12).to_string(), "[#########-]");
    }

    #[test]
    fn bar_has_given_width() {
        for width in 2..40 {
            for used in 0..20 {
                let bar = Bar::new(used, 3, 17, width).to_string();
                assert_eq!(bar.len(), width, "{bar}");
            }
        }
    }
}

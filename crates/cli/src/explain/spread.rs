use std::fmt;

/// How far estimates were off, in parts of what they were for.
#[derive(Debug, Clone, Default)]
pub(super) struct Spread(Vec<f64>);

impl Spread {
    pub(super) fn add(&mut self, estimated: u64, truth: u64) {
        self.0.push(estimated.abs_diff(truth) as f64 / truth.max(1) as f64);
    }

    /// The value that this part of all don't exceed.
    fn quantile(&self, part: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

impl fmt::Display for Spread {
    /// How many, their median and their 90th percentile, in columns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part| match self.quantile(part) {
            Some(off) => format!("{:.1} %", off * 100.0),
            None => "-".to_owned(),
        };
        write!(f, "{:>7} {:>9} {:>9}", self.0.len(), percent(0.5), percent(0.9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_90th_percentile_are_nearest_ranks() {
        let mut spread = Spread::default();
        assert_eq!(spread.quantile(0.5), None);
        (0..=100).rev().for_each(|off| spread.add(100 + off, 100));
        assert_eq!((spread.quantile(0.5), spread.quantile(0.9)), (Some(0.5), Some(0.9)));
        assert_eq!(spread.to_string().split_whitespace().next(), Some("101"));
    }
}

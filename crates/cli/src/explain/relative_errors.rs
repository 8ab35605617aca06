use hdrhistogram::Histogram;

/// A histogram of relative errors, in thousandths of the true value, rounded to the nearest.
#[derive(Debug, Clone)]
pub(super) struct RelativeErrors(Histogram<u64>);

impl RelativeErrors {
    /// Records the error of an estimate.
    pub(super) fn record(&mut self, estimate: u64, truth: u64) {
        let truth_or_one = u128::from(truth.max(1));
        let error = u128::from(estimate.abs_diff(truth)) * 1_000 + truth_or_one / 2;
        let error = error / truth_or_one;
        let error = u64::try_from(error).unwrap_or(u64::MAX).min(LARGEST);
        self.0.record(error).expect("the histogram resizes up to the largest value");
    }

    /// Returns the number of errors, their median and their 90th percentile as texts.
    pub(super) fn summary(&self) -> [String; 3] {
        [self.0.len().to_string(), self.percentile(0.5), self.percentile(0.9)]
    }

    fn percentile(&self, quantile: f64) -> String {
        match self.0.is_empty() {
            true => "-".to_owned(),
            false => format!("{:.1} %", self.0.value_at_quantile(quantile) as f64 / 10.0),
        }
    }
}

impl Default for RelativeErrors {
    fn default() -> Self {
        Self(Histogram::new(3).expect("3 significant digits are supported"))
    }
}

/// The largest value of a histogram that resizes.
const LARGEST: u64 = i64::MAX as u64 / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_median_and_90th_percentile() {
        let mut errors = RelativeErrors::default();
        assert_eq!(errors.summary(), ["0", "-", "-"]);
        (0..=100).rev().for_each(|error| errors.record(100 + error, 100));
        assert_eq!(errors.summary(), ["101", "50.0 %", "90.0 %"]);
        errors.record(u64::MAX, 0);
    }
}

use tollgate_simulate::SpendLimit;

/// Parses a limit on spending and its prices, in dollars.
pub(super) fn spend(text: &str) -> Result<SpendLimit, String> {
    let amounts: Option<Vec<u64>> = text.split(',').map(micro_dollars).collect();
    match amounts.as_deref() {
        Some(&[limit, input_price, output_price]) if limit > 0 => {
            Ok(SpendLimit { limit, input_price, output_price })
        }
        _ => Err("must be three amounts in dollars, such as 1.50,0.30,2.50".to_owned()),
    }
}

fn micro_dollars(text: &str) -> Option<u64> {
    let dollars: f64 = text.trim().parse().ok()?;
    (0.0..=MAX_DOLLARS).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
}

const MAX_DOLLARS: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_dollars() {
        let expected =
            SpendLimit { limit: 1_500_000, input_price: 300_000, output_price: 2_500_000 };
        assert_eq!(spend("1.50,0.30,2.50"), Ok(expected));
        for invalid in ["1.50", "0,1,1", "1,-1,1", "1,NaN,1", "1,2,3,4", ""] {
            assert!(spend(invalid).is_err(), "{invalid}");
        }
    }
}

use schemars::JsonSchema;
use serde::Deserialize;

use super::whole::Whole;

/// Which part of a long list is asked for.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageFields {
    /// How many entries at most: from 1 to 1000. Default: 100.
    limit: Option<Limit>,
    /// Only those behind this one in the order of the list: `next` of the page before.
    after: Option<String>,
}

type Limit = Whole<1, 1_000>;

impl PageFields {
    /// The entries of this page of a list that is sorted by name, and the name of the last where more
    /// follow.
    pub(super) fn of<T: Clone>(
        &self,
        sorted: &[T],
        name: impl Fn(&T) -> &str,
    ) -> (Vec<T>, Option<String>) {
        let after = |entry: &T| self.after.as_deref().is_some_and(|after| name(entry) <= after);
        let rest = &sorted[sorted.partition_point(after)..];
        let limit = usize::try_from(self.limit.map_or(DEFAULT, |limit| limit.0));
        let page = &rest[..rest.len().min(limit.unwrap_or(usize::MAX))];
        let more = page.len() < rest.len();
        let next = page.last().filter(|_| more).map(|last| name(last).to_owned());
        (page.to_vec(), next)
    }
}

const DEFAULT: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_each_entry_once_even_if_the_last_one_told_is_gone() {
        let sorted = ["a", "b", "d", "e"];
        let page = |limit, after: Option<&str>| {
            let limit = Some(Whole(limit));
            PageFields { limit, after: after.map(str::to_owned) }.of(&sorted, |name| name)
        };
        assert_eq!(page(2, None), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(page(2, Some("b")), (vec!["d", "e"], None));
        assert_eq!(page(1, Some("c")), (vec!["d"], Some("d".to_owned())));
        assert_eq!(page(9, Some("e")), (vec![], None));
    }
}

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounded_integer::BoundedInteger;

/// The requested page of a long list.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageRequest {
    /// The maximum number of entries, from 1 to 1000. Default: 100.
    limit: Option<Limit>,
    /// Returns only entries after this one: `next` of the previous page.
    after: Option<String>,
}

type Limit = BoundedInteger<1, 1_000>;

impl PageRequest {
    /// Returns the entries of the page from a list sorted by name, and the name of the last entry if
    /// more follow.
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
    fn pages_are_complete_if_the_last_entry_was_removed() {
        let sorted = ["a", "b", "d", "e"];
        let page = |limit, after: Option<&str>| {
            let limit = Some(BoundedInteger(limit));
            PageRequest { limit, after: after.map(str::to_owned) }.of(&sorted, |name| name)
        };
        assert_eq!(page(2, None), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(page(2, Some("b")), (vec!["d", "e"], None));
        assert_eq!(page(1, Some("c")), (vec!["d"], Some("d".to_owned())));
        assert_eq!(page(9, Some("e")), (vec![], None));
    }
}

/// The names of an account's keys in Redis.
#[derive(Debug)]
pub(super) struct RedisKeys {
    account: String,
    spread: bool,
}

impl RedisKeys {
    pub(super) fn new(account: &str, spread: bool) -> Self {
        Self { account: escaped(account), spread }
    }

    /// Returns the Redis key of a limiter's key. The hash tag in braces selects the cluster slot:
    /// one for the whole account, or one per key if they are spread.
    pub(super) fn key(&self, key: &str) -> Vec<u8> {
        let (account, key) = (&self.account, escaped(key));
        match self.spread {
            false => format!("paceline:{{{account}}}:{key}"),
            true => format!("paceline:{{{account}/{key}}}"),
        }
        .into_bytes()
    }

    /// Returns the Redis key of the set of live processes.
    pub(super) fn members(&self) -> Vec<u8> {
        format!("paceline:{{{}}}#members", self.account).into_bytes()
    }

    /// Returns the Redis key of the reports of these processes to a server that has lost its data.
    pub(super) fn reports(&self) -> Vec<u8> {
        format!("paceline:{{{}}}#reports", self.account).into_bytes()
    }

    /// Returns whether each key has its own slot.
    pub(super) fn is_spread(&self) -> bool {
        self.spread
    }
}

/// Escapes the characters that could change the hash tag or the end of the account name.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '%' => escaped.push_str("%25"),
            '/' => escaped.push_str("%2F"),
            '{' => escaped.push_str("%7B"),
            '}' => escaped.push_str("%7D"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_names_do_not_change_the_slot() {
        let redis_keys = |spread| RedisKeys::new("a}{b/%", spread);
        assert_eq!(redis_keys(false).key("{k}"), b"paceline:{a%7D%7Bb%2F%25}:%7Bk%7D");
        assert_eq!(redis_keys(true).key("c/k"), b"paceline:{a%7D%7Bb%2F%25/c%2Fk}");
    }

    #[test]
    fn keys_of_different_accounts_have_different_names() {
        assert_ne!(RedisKeys::new("a/b", true).key("c"), RedisKeys::new("a", true).key("b/c"));
        assert_ne!(
            RedisKeys::new("a", false).key("#members"),
            RedisKeys::new("a", false).members()
        );
    }
}

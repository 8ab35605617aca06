use redis::Value;

use super::link::Link;

/// Warns if the server may evict keys, which would lose the usage of their limits. Says nothing if the
/// server doesn't tell.
pub(super) async fn warn_if_evicting(mut link: Link, server: String) {
    // `INFO` is allowed by managed services, most of which deny `CONFIG GET`.
    let mut command = redis::cmd("INFO");
    command.arg("memory");
    let answer = link.query::<Value>(&command).await;
    let Ok(answer) = answer.inspect_err(|error| {
        tracing::debug!(server, kind = ?error.kind(), "the eviction policy is unknown");
    }) else {
        return;
    };
    let mut texts = Vec::new();
    collect_texts(&answer, &mut texts);
    if let Some(policy) = texts.iter().find_map(|text| evicting_policy(text)) {
        tracing::warn!(
            server,
            policy,
            "the shared store evicts keys when its memory is full, which loses the usage of their limits; set \
             its `maxmemory-policy` to `noeviction`"
        );
    }
}

/// Returns the eviction policy of a server whose memory is limited, unless it evicts nothing.
fn evicting_policy(info: &str) -> Option<&str> {
    let value = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let policy = value("maxmemory_policy").filter(|policy| *policy != "noeviction")?;
    (value("maxmemory")? != "0").then_some(policy)
}

/// Collects the texts of an answer, which has one for each node of a cluster.
fn collect_texts(answer: &Value, texts: &mut Vec<String>) {
    match answer {
        Value::BulkString(bytes) => texts.push(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => texts.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| collect_texts(part, texts)),
        Value::Map(parts) => parts.iter().for_each(|(_, part)| collect_texts(part, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limited_memory_with_eviction_is_reported() {
        let info = |max, policy| format!("maxmemory:{max}\r\nx:1\r\nmaxmemory_policy:{policy}\r\n");
        assert_eq!(evicting_policy(&info("100", "allkeys-lru")), Some("allkeys-lru"));
        assert_eq!(evicting_policy(&info("0", "allkeys-lru")), None);
        assert_eq!(evicting_policy(&info("100", "noeviction")), None);
        assert_eq!(evicting_policy("maxmemory_policy:allkeys-lru"), None);
        assert_eq!(evicting_policy(""), None);
    }
}

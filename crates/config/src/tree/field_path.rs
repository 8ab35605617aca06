use std::fmt;

use super::mask::quote;

/// The path from the root of a configuration to one value: `quotas.gpt-4o.limits[0].zone`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Segment>);

/// One segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// An entry of a map.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

impl FieldPath {
    /// Returns the path with these keys.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Segment::Key(key.to_owned())).collect())
    }

    /// Returns the path of an entry of the map at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_owned()))
    }

    /// Returns the path of an item of the list at this path, from 0.
    #[must_use]
    pub fn item(&self, item: usize) -> Self {
        self.with(Segment::Item(item))
    }

    pub(crate) fn with(&self, step: Segment) -> Self {
        let mut path = self.0.clone();
        path.push(step);
        Self(path)
    }

    /// Inserts a segment at the front.
    pub(crate) fn prepend(&mut self, step: Segment) {
        self.0.insert(0, step);
    }

    pub(crate) fn as_slice(&self) -> &[Segment] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if `other` is this path, or the path of a value below it.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for FieldPath {
    /// Quotes keys with dots, spaces or other special characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Segment::Item(item) => write!(f, "[{item}]")?,
                Segment::Key(key) => {
                    f.write_str(if at == 0 { "" } else { "." })?;
                    let plain = |c: char| c.is_alphanumeric() || "_-:*?".contains(c);
                    match !key.is_empty() && key.chars().all(plain) {
                        true => f.write_str(key)?,
                        // A user who confuses names and values may have put a URL here.
                        false => f.write_str(&quote(key))?,
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_display_quotes_ambiguous_keys() {
        let path = FieldPath::new(["quotas", "gpt-4o", "limits"]).item(2).key("zone");
        assert_eq!(path.to_string(), "quotas.gpt-4o.limits[2].zone");
        assert_eq!(
            FieldPath::new(["quotas", "gemini-2.5-pro"]).to_string(),
            "quotas.\"gemini-2.5-pro\""
        );
        assert_eq!(FieldPath::default().to_string(), "");
    }
}

use std::fmt;

use super::mask::quote;

/// The path from the root of a configuration to one value: `quotas.gpt-4o.limits[0].zone`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps(Vec<Step>);

/// One step of that way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) enum Step {
    /// To an entry of a map.
    Key(String),
    /// To an item of a list, from 0.
    Item(usize),
}

impl Steps {
    /// Returns the path with these keys.
    pub fn to<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Step::Key(key.to_owned())).collect())
    }

    /// Returns the path of an entry of the map at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// Returns the path of an item of the list at this path, from 0.
    #[must_use]
    pub fn item(&self, item: usize) -> Self {
        self.with(Step::Item(item))
    }

    pub(in crate::config) fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Puts a step before all others.
    pub(in crate::config) fn lead(&mut self, step: Step) {
        self.0.insert(0, step);
    }

    pub(in crate::config) fn as_slice(&self) -> &[Step] {
        &self.0
    }

    pub(in crate::config) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `other` is this, or lies below it.
    pub(in crate::config) fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for Steps {
    /// Keys with dots or spaces in them are quoted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Item(item) => write!(f, "[{item}]")?,
                Step::Key(key) => {
                    f.write_str(if at == 0 { "" } else { "." })?;
                    let plain = |c: char| c.is_alphanumeric() || "_-:*?".contains(c);
                    match !key.is_empty() && key.chars().all(plain) {
                        true => f.write_str(key)?,
                        // Who mixes up names and values may have put a URL here.
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
    fn a_path_reads_as_in_a_program_and_quotes_what_would_be_misread() {
        let path = Steps::to(["quotas", "gpt-4o", "limits"]).item(2).key("zone");
        assert_eq!(path.to_string(), "quotas.gpt-4o.limits[2].zone");
        assert_eq!(
            Steps::to(["quotas", "gemini-2.5-pro"]).to_string(),
            "quotas.\"gemini-2.5-pro\""
        );
        assert_eq!(Steps::default().to_string(), "");
    }
}

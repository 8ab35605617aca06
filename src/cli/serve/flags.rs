use std::borrow::Cow;

/// A flag of `tollgate serve`, as it was given.
#[derive(Debug)]
pub(super) struct Flag<'a> {
    name: &'static str,
    /// The way to its value below `serve`.
    path: &'static [&'static str],
    kind: Kind,
    given: Option<&'a str>,
}

#[derive(Debug)]
enum Kind {
    Text,
    Bool,
    Name,
}

impl<'a> Flag<'a> {
    /// One whose value is as the configuration has it.
    pub(super) fn text(
        name: &'static str,
        path: &'static [&'static str],
        given: &'a Option<String>,
    ) -> Self {
        Self { name, path, kind: Kind::Text, given: given.as_deref() }
    }

    /// One that is or isn't, in the spellings of Go's `strconv.ParseBool`.
    pub(super) fn bool(
        name: &'static str,
        path: &'static [&'static str],
        given: &'a Option<String>,
    ) -> Self {
        Self { kind: Kind::Bool, ..Self::text(name, path, given) }
    }

    /// One of a few names, in whatever case.
    pub(super) fn name(
        name: &'static str,
        path: &'static [&'static str],
        given: &'a Option<String>,
    ) -> Self {
        Self { kind: Kind::Name, ..Self::text(name, path, given) }
    }

    /// One that is no value of the configuration.
    pub(super) fn other(name: &'static str, given: &'a Option<String>) -> Self {
        Self::text(name, &[], given)
    }

    /// The way to its value in the configuration.
    pub(super) fn path(&self) -> Vec<&'static str> {
        [&["serve"], self.path].concat()
    }

    /// What was said, and by which name: the flag, or else its variable.
    pub(super) fn set(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(String, String)> {
        let spelled = |text: &str| self.spelled(text).into_owned();
        if let Some(given) = self.given {
            return Some((self.name.to_owned(), spelled(given)));
        }
        let name = self.variable();
        // An empty one is none: that is how scripts and Compose files say so.
        let value = variable(&name).filter(|value| !value.trim().is_empty())?;
        // Kubernetes gives the pods beside a service `tollgate` its address as TOLLGATE_PORT.
        let value = Some(value).filter(|value| !value.starts_with("tcp://"))?;
        Some((name, spelled(&value)))
    }

    fn variable(&self) -> String {
        let name = self.name.trim_start_matches('-').replace('-', "_").to_uppercase();
        format!("TOLLGATE_{name}")
    }

    /// The value as the configuration spells it; what can't be read is left to it to refuse.
    fn spelled<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let value = value.trim();
        match self.kind {
            Kind::Text => value.into(),
            Kind::Bool => match value {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => "true".into(),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => "false".into(),
                _ => value.into(),
            },
            Kind::Name => match value.to_lowercase() {
                name if name == "system-default" => "text".into(),
                name => name.into(),
            },
        }
    }
}

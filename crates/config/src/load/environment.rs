use crate::read::misspelt;
use crate::section::Sections;

/// Returns the path of the value that an environment variable sets: `PACELINE_STORE__FLUSH` sets
/// `store.flush`. Returns `None` for a variable with another purpose, such as `PACELINE_TOKEN`.
///
/// # Errors
/// Returns a message if the name of the section is misspelt, or unknown and followed by `__`.
pub(super) fn path(variable: &str, sections: &Sections) -> Result<Option<Vec<String>>, String> {
    let Some(name) = variable.strip_prefix(PREFIX) else { return Ok(None) };
    let (first, fields) = match name.split_once("__") {
        Some((first, fields)) => (first, Some(fields)),
        None => (name, None),
    };
    let names = sections.names();
    let Some(section) = names.iter().find(|section| section.eq_ignore_ascii_case(first)) else {
        return match (misspelt(first, &names), fields) {
            (Some(near), _) => {
                let meant = format!("{PREFIX}{}{}", near.to_uppercase(), &name[first.len()..]);
                Err(format!("unknown section; did you mean {meant}?"))
            }
            (None, Some(_)) => Err(format!("unknown section; allowed: {}", names.join(", "))),
            (None, None) => Ok(None),
        };
    };
    let mut path = vec![(*section).to_owned()];
    for part in fields.into_iter().flat_map(|fields| fields.split("__")) {
        // Names that the user chooses keep their case; fields are lowercased.
        let parent: Vec<_> = path.iter().map(String::as_str).collect();
        path.push(if sections.has_user_names(&parent) {
            part.to_owned()
        } else {
            part.to_lowercase()
        });
    }
    Ok(Some(path))
}

const PREFIX: &str = "PACELINE_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_sets_a_field_of_a_section() {
        for (variable, to) in [
            ("PACELINE_STORE__FLUSH", Some("store.flush")),
            ("PACELINE_UNKNOWN_KEY", Some("unknown_key")),
            ("PACELINE_QUOTAS__GPT__RPM", Some("quotas.GPT.rpm")),
            ("PACELINE_SERVE__MODE", Some("serve.mode")),
            ("PACELINE_CORPUS", None),
            ("PACELINE_CONFIG", None),
            ("STORE__FLUSH", None),
        ] {
            let path = path(variable, &Sections::new()).expect(variable);
            assert_eq!(path.map(|path| path.join(".")).as_deref(), to);
        }
    }

    #[test]
    fn misspelt_section_is_error_and_other_variables_are_ignored() {
        for (variable, message) in [
            ("PACELINE_STOER__FLUSH", "did you mean PACELINE_STORE__FLUSH?"),
            ("PACELINE_QUOTA__gpt-4o__RPM", "did you mean PACELINE_QUOTAS__gpt-4o__RPM?"),
            ("PACELINE_UNKNOWN_KEYS", "did you mean PACELINE_UNKNOWN_KEY?"),
            ("PACELINE_SERVER__MODE", "did you mean PACELINE_SERVE__MODE?"),
            ("PACELINE_FLUSH__STORE", "unknown section; allowed: providers, "),
        ] {
            let error = path(variable, &Sections::new()).expect_err(variable);
            assert!(error.contains(message), "{variable}: {error}");
        }
        // Variables of the command, and variables that Kubernetes sets for a service named `paceline`.
        for other in [
            "TOKEN",
            "ADMIN_TOKEN",
            "CONFIG",
            "CONFIG_FILE",
            "PORT",
            "LISTEN",
            "ALLOW_ANONYMOUS",
            "MAX_REQUESTS",
            "MAX_REQUESTS_IN_QUEUE",
            "WINDOW_MILLIS",
            "ALGORITHM",
            "LOG_FORMAT",
            "LOG_LEVEL",
            "LOG2XX",
            "INSTANCE_URLS",
            "TRACES",
            "SERVICE_HOST",
            "SERVICE_PORT",
            "PORT_8080_TCP",
            "PORT_8080_TCP_ADDR",
            "SERVICE_PORT_HTTP",
        ] {
            assert_eq!(path(&format!("PACELINE_{other}"), &Sections::new()), Ok(None), "{other}");
        }
    }
}

/// The way to the value that an environment variable gives, with the names of sections as they are in
/// the file: `TOLLGATE_STORE__FLUSH` gives `store.flush`. `None` where it names no section.
pub(super) fn path(variable: &str, sections: &[&str]) -> Option<Vec<String>> {
    let mut parts = variable.strip_prefix("TOLLGATE_")?.split("__");
    let first = parts.next()?;
    let section = sections.iter().find(|section| section.eq_ignore_ascii_case(first))?;
    let mut path = vec![(*section).to_owned()];
    for part in parts {
        // Keys and upstreams are as they are; fields are in small letters.
        let way: Vec<_> = path.iter().map(String::as_str).collect();
        let own_names = matches!(way[..], ["quotas"] | ["serve", "upstreams"]);
        path.push(if own_names { part.to_owned() } else { part.to_lowercase() });
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_a_section_and_a_field() {
        let sections = ["store", "quotas", "unknown_key", "serve"];
        for (variable, to) in [
            ("TOLLGATE_STORE__FLUSH", Some("store.flush")),
            ("TOLLGATE_UNKNOWN_KEY", Some("unknown_key")),
            ("TOLLGATE_QUOTAS__GPT__RPM", Some("quotas.GPT.rpm")),
            ("TOLLGATE_SERVE__UPSTREAMS__Mine__BASE_URL", Some("serve.upstreams.Mine.base_url")),
            ("TOLLGATE_CORPUS", None),
            ("TOLLGATE_CONFIG", None),
            ("STORE__FLUSH", None),
        ] {
            assert_eq!(path(variable, &sections).map(|path| path.join(".")).as_deref(), to);
        }
    }
}

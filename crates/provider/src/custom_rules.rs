use http::{HeaderName, HeaderValue};

use crate::alias::check_name;
use crate::interned::Interned;
use crate::invalid_profile::InvalidProfile;
use crate::rules::Rules;
use crate::scanner::{FieldTable, check_fields};

/// The rules of a custom profile, which are kept for the life of the process.
pub(super) struct CustomRules {
    pub(super) rules: Rules,
    /// The fields that state usage, if they are not those of all known formats.
    pub(super) fields: Option<FieldTable>,
}

impl CustomRules {
    /// Returns the rules, which are kept once.
    ///
    /// # Errors
    /// [`InvalidProfile`] for an invalid name or a rule that can't be applied.
    pub(super) fn keep(rules: Rules) -> Result<&'static Self, InvalidProfile> {
        check_name(rules.name)?;
        check(&rules)?;
        let new = || Self { rules, fields: rules.usage.map(FieldTable::new) };
        Ok(CUSTOM.find_or_add(|kept| kept.rules == rules, new))
    }
}

fn check(rules: &Rules) -> Result<(), InvalidProfile> {
    let invalid = |rule, reason: String| Err(InvalidProfile::Rule { rule, reason });
    if let Err(reason) = check_fields(rules.usage.unwrap_or_default()) {
        return invalid("usage", reason);
    }
    let headers =
        [("api", rules.api.key_header), ("charge_header", rules.charge_header.unwrap_or("x"))];
    let usage_headers = rules.usage_headers.iter().map(|(name, _)| ("usage_headers", *name));
    let constant_headers = rules.api.constant_headers.iter().map(|(name, _)| ("api", *name));
    for (rule, name) in headers.into_iter().chain(usage_headers).chain(constant_headers) {
        if HeaderName::from_lowercase(name.as_bytes()).is_err() {
            return invalid(rule, format!("{name:?} is not a header name in lower case"));
        }
    }
    for (_, value) in rules.api.constant_headers {
        if HeaderValue::from_str(value).is_err() {
            return invalid("api", format!("{value:?} is not a header value"));
        }
    }
    for prefix in rules.limits.prefixes() {
        if prefix.is_empty() || HeaderName::from_lowercase(prefix.as_bytes()).is_err() {
            return invalid("limits", format!("{prefix:?} is not a header prefix in lower case"));
        }
    }
    Ok(())
}

static CUSTOM: Interned<CustomRules> = Interned::new();

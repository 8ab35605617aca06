use std::sync::Arc;

use serde_json::Value as Json;

use super::section::Section;
use super::values::SectionValue;
use crate::check::Check;
use crate::tree::FieldPath;

/// The fields of a registered section of any type.
pub(super) trait SectionFields: Send + Sync {
    fn name(&self) -> &'static str;

    fn to_json(&self) -> Json;

    fn check(&self, check: &mut Check<'_>) -> Arc<dyn SectionValue>;
}

/// The fields of the section `S`.
pub(super) struct FieldsOf<S: Section>(pub(super) S::Fields);

impl<S: Section> SectionFields for FieldsOf<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn to_json(&self) -> Json {
        serde_json::to_value(&self.0).unwrap_or_default()
    }

    fn check(&self, check: &mut Check<'_>) -> Arc<dyn SectionValue> {
        Arc::new(S::check(&self.0, &FieldPath::new([S::NAME]), check))
    }
}

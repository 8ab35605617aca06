use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::section::Sections;

/// Returns the JSON Schema (draft 2020-12) of a configuration file, for completion and checks in editors.
///
/// The schema is generated from the types that the file is read into. It covers only some of the rules for
/// combinations of fields.
pub fn schema() -> Value {
    schema_with(&Sections::new())
}

/// Returns the JSON Schema of a configuration file that may also have these sections.
pub fn schema_with(sections: &Sections) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.root_schema_for::<Fields>().to_value();
    for name in sections.unregistered() {
        let about = format!("The section of `paceline-{name}`; this schema does not check it.");
        schema["properties"][name] = json!({"description": about, "type": ["object", "null"]});
    }
    for (name, section) in sections.schemas(&mut generator) {
        schema["properties"][name] = section.to_value();
    }
    schema["$defs"] = generator.take_definitions(true).into();
    schema
}

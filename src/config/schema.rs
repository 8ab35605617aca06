use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::fields::Fields;

/// The JSON Schema (draft 2020-12) of a configuration file, by which editors complete and check it.
///
/// It is made of the types that read the file. What fields mean together it tells only in part.
pub fn schema() -> Value {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Fields>();
    schema.to_value()
}

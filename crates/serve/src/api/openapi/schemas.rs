use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The source of the schemas of operations.
pub(super) struct Schemas {
    pub(super) generator: SchemaGenerator,
    /// The maximum length of a key, in bytes.
    pub(super) max_key_length: usize,
}

impl Schemas {
    /// Creates schemas of JSON Schema 2020-12 that refer to each other as components of OpenAPI 3.1.
    pub(super) fn new(max_key_length: usize) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.definitions_path = "/components/schemas".into();
        });
        Self { generator: settings.into_generator(), max_key_length }
    }

    /// Returns a reference to the schema of a type.
    pub(super) fn of<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }
}

//! The JSON Schema of scenarios, from the types that run.

use schemars::generate::SchemaSettings;

use super::Scenario;

/// The JSON Schema (draft 2020-12) of a scenario.
pub fn schema() -> String {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Scenario>();
    schema.insert("$id".into(), "https://github.com/farlink/farlink/scenario.schema.json".into());
    schema.insert("title".into(), "farlink scenario".into());
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

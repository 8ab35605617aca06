use serde_json::Value;

use super::*;
use crate::route::Route;

/// Each reference in it leads somewhere.
#[test]
fn every_schema_that_is_named_is_there() {
    let mut generator = generator();
    let mut paths = own::paths(&mut generator, 256);
    paths.extend(others::paths(256));
    let document = json!({
        "paths": paths,
        "components": components::components(&mut generator, 256),
    });
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 30, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("it is one within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    assert_eq!(document["components"]["schemas"]["Key"]["maxLength"], 256);
    assert!(document["components"]["schemas"]["Quota"]["properties"]["rpm"].is_object());
    assert!(document["components"]["schemas"]["Quota"]["properties"].get("regex").is_none());
}

/// Logs and figures tell of each by its own name.
#[test]
fn every_path_is_a_route_of_its_own() {
    let mut paths = own::paths(&mut generator(), 256);
    paths.extend(others::paths(256));
    for path in paths.keys().filter(|path| !path.starts_with("/{upstream}")) {
        assert_eq!(Route::of(path).template(), path);
    }
}

fn collect<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Object(entries) => {
            references.extend(entries.get("$ref").and_then(Value::as_str));
            entries.values().for_each(|entry| collect(entry, references));
        }
        _ => {}
    }
}

use serde_json::Value;

use super::*;

#[test]
fn references_point_to_existing_components() {
    let document = value(256);
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 30, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("a reference within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    assert_eq!(document["components"]["schemas"]["Key"]["maxLength"], 256);
    assert!(document["components"]["schemas"]["Quota"]["properties"]["rpm"].is_object());
    assert!(document["components"]["schemas"]["Quota"]["properties"].get("regex").is_none());
}

#[test]
fn operations_have_summaries_and_described_responses() {
    let document = value(256);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(operation["operationId"].is_string(), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(description.ends_with('.'), "{method} {path} {status}: {description}");
            }
        }
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

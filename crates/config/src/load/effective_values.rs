use paceline_limiter::quota::{Limit, Quota};
use serde_json::{Value as Json, json};

use crate::config::Config;
use crate::section::Document;
use crate::tree::{FieldPath, Node, Origin, Segment, Value, mask};

/// All values in effect with their sources, as `paceline show` lists them.
#[derive(Debug)]
pub(super) struct EffectiveValues(Vec<EffectiveValue>);

#[derive(Debug)]
struct EffectiveValue {
    path: FieldPath,
    value: Json,
    origin: String,
}

impl EffectiveValues {
    pub(super) fn new(tree: &Node, document: &Document, config: &Config) -> Self {
        let mut values = Vec::new();
        collect(&FieldPath::default(), &document.effective(), Some(tree), &mut values);
        add_profiles(config, &mut values);
        Self(values)
    }

    pub(super) fn to_text(&self) -> String {
        let cells: Vec<(String, String)> = self
            .0
            .iter()
            .map(|listed| (listed.path.to_string(), listed.value.to_string()))
            .collect();
        let width = |cell: &dyn Fn(&(String, String)) -> usize| {
            cells.iter().map(cell).max().unwrap_or(0).min(MAX_WIDTH)
        };
        let paths = width(&|(path, _)| path.chars().count());
        let values = width(&|(_, value)| value.chars().count());
        let lines = self.0.iter().zip(&cells).map(|(listed, (path, value))| {
            format!("{path:paths$}  {value:values$}  {}\n", listed.origin)
        });
        lines.collect()
    }

    pub(super) fn to_json(&self) -> Json {
        let entry = |effective: &EffectiveValue| {
            let EffectiveValue { path, value, origin } = effective;
            json!({"path": path.to_string(), "value": value, "origin": origin})
        };
        Json::Array(self.0.iter().map(entry).collect())
    }
}

/// Adds the values below `path`, with the origins that `stated` contains.
fn collect(
    path: &FieldPath,
    value: &Json,
    stated: Option<&Node>,
    values: &mut Vec<EffectiveValue>,
) {
    match value {
        Json::Object(entries) if !entries.is_empty() => {
            let stated = stated.map(Node::entries).unwrap_or_default();
            for (name, value) in entries {
                collect(&path.key(name), value, stated.get(name.as_str()).copied(), values);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                let stated = stated.and_then(|node| node.child(&Segment::Item(at)));
                collect(&path.item(at), value, stated, values);
            }
        }
        value => {
            let value = match stated.map(|node| &node.value) {
                Some(Value::Text(text)) => Json::from(mask(text)),
                _ => value.clone(),
            };
            // The default applies to a null value (`~`).
            let stated = stated.filter(|node| !matches!(node.value, Value::Null));
            let origin = stated.map_or(&Origin::BuiltIn, |node| &node.origin);
            values.push(EffectiveValue { path: path.clone(), value, origin: origin.brief() });
        }
    }
}

/// Adds the default quotas of the providers, except those that the file replaces.
fn add_profiles(config: &Config, values: &mut Vec<EffectiveValue>) {
    for provider in &config.providers {
        for built_in in provider.quotas() {
            let path = FieldPath::new(["quotas", built_in.pattern]);
            let is_listed = |listed: &EffectiveValue| path.contains(&listed.path);
            if let (false, Ok(built_in_quota)) = (values.iter().any(is_listed), built_in.quota()) {
                let value = quota(&built_in_quota);
                let origin = Origin::Profile(provider.name().into());
                let origin = format!("{} ({})", origin.brief(), built_in.as_of);
                values.push(EffectiveValue { path, value, origin });
            }
        }
    }
}

fn quota(quota: &Quota) -> Json {
    let limit = |limit: &Limit| match limit.calendar() {
        Some(calendar) => format!(
            "{} {} / {:?} {}",
            limit.amount(),
            limit.dimension(),
            calendar.period(),
            calendar.zone()
        ),
        None if limit.window().is_endless() => {
            format!("{} {} / total", limit.amount(), limit.dimension())
        }
        None => {
            format!("{} {} / {:?}", limit.amount(), limit.dimension(), limit.window().as_duration())
        }
    };
    Json::from(quota.limits().iter().map(limit).collect::<Vec<_>>().join(", "))
}

/// The maximum width of a column in characters, so that one long value doesn't widen the whole table.
const MAX_WIDTH: usize = 48;

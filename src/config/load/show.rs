use serde_json::{Value as Json, json};

use crate::config::config::Config;
use crate::config::section::Document;
use crate::config::tree::{Node, Origin, Step, Steps, Value, mask};
use crate::quota::{Limit, Quota};

/// Every value in effect, and where it was said.
#[derive(Debug)]
pub(super) struct Shown(Vec<Row>);

#[derive(Debug)]
struct Row {
    steps: Steps,
    value: Json,
    origin: String,
}

impl Shown {
    pub(super) fn new(tree: &Node, document: &Document, config: &Config) -> Self {
        let mut rows = Vec::new();
        collect(&Steps::default(), &document.effective(), Some(tree), &mut rows);
        profiles(config, &mut rows);
        Self(rows)
    }

    pub(super) fn text(&self) -> String {
        let cells: Vec<(String, String)> =
            self.0.iter().map(|row| (row.steps.to_string(), row.value.to_string())).collect();
        let width = |cell: &dyn Fn(&(String, String)) -> usize| {
            cells.iter().map(cell).max().unwrap_or(0).min(WIDEST)
        };
        let paths = width(&|(path, _)| path.chars().count());
        let values = width(&|(_, value)| value.chars().count());
        let lines = self.0.iter().zip(&cells).map(|(row, (path, value))| {
            format!("{path:paths$}  {value:values$}  {}\n", row.origin)
        });
        lines.collect()
    }

    pub(super) fn json(&self) -> Json {
        let row = |row: &Row| json!({"path": row.steps.to_string(), "value": row.value, "origin": row.origin});
        Json::Array(self.0.iter().map(row).collect())
    }
}

/// The values below `steps`: as they were said, where they were.
fn collect(steps: &Steps, value: &Json, said: Option<&Node>, rows: &mut Vec<Row>) {
    match value {
        Json::Object(entries) if !entries.is_empty() => {
            let said = said.map(Node::entries).unwrap_or_default();
            for (name, value) in entries {
                collect(&steps.key(name), value, said.get(name.as_str()).copied(), rows);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                let said = said.and_then(|node| node.child(&Step::Item(at)));
                collect(&steps.item(at), value, said, rows);
            }
        }
        value => {
            let value = match said.map(|node| &node.value) {
                Some(Value::Text(text)) => Json::from(mask(text)),
                _ => value.clone(),
            };
            // Where nothing (`~`) was said, the default counts.
            let said = said.filter(|node| !matches!(node.value, Value::Null));
            let origin = said.map_or(&Origin::BuiltIn, |node| &node.origin);
            rows.push(Row { steps: steps.clone(), value, origin: origin.brief() });
        }
    }
}

/// What the profiles bring along and the file doesn't name.
fn profiles(config: &Config, rows: &mut Vec<Row>) {
    for provider in &config.providers {
        for built_in in provider.quotas() {
            let steps = Steps::to(["quotas", built_in.pattern]);
            let said = |row: &Row| steps.holds(&row.steps);
            if let (false, Ok(built_in_quota)) = (rows.iter().any(said), built_in.quota()) {
                let value = quota(&built_in_quota);
                let origin = Origin::Profile(provider.name().into());
                let origin = format!("{} ({})", origin.brief(), built_in.as_of);
                rows.push(Row { steps, value, origin });
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
        None => {
            format!("{} {} / {:?}", limit.amount(), limit.dimension(), limit.window().as_duration())
        }
    };
    Json::from(quota.limits().iter().map(limit).collect::<Vec<_>>().join(", "))
}

/// Columns are no wider, so that one long value doesn't push all origins out of sight.
const WIDEST: usize = 48;

//! A recorder of `tracing` spans and events.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The spans and events that were recorded since the subscriber was set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Line>>>);

/// A span or an event.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The name of the span or the message of the event.
    pub(crate) name: String,
    pub(crate) target: &'static str,
    pub(crate) level: Level,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// The name of the parent span.
    pub(crate) inside: Option<&'static str>,
    /// `true` for a span that has ended.
    pub(crate) closed: bool,
    id: Option<u64>,
}

impl Line {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

impl Log {
    /// Records this thread's spans and events up to this level while the guard is alive.
    pub(crate) fn at(level: Level) -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let filter = tracing_subscriber::filter::LevelFilter::from_level(level);
        let subscriber = tracing_subscriber::registry().with(log.clone().with_filter(filter));
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().clone()
    }

    /// Returns the spans and events of this name.
    pub(crate) fn named(&self, name: &str) -> Vec<Line> {
        self.lines().into_iter().filter(|line| line.name == name).collect()
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (metadata, mut fields) = (attributes.metadata(), BTreeMap::new());
        attributes.record(&mut Fields(&mut fields));
        let parent = context.span(id).and_then(|span| Some(span.parent()?.name()));
        self.0.lock().push(Line {
            name: metadata.name().to_owned(),
            target: metadata.target(),
            level: *metadata.level(),
            fields,
            inside: parent,
            closed: false,
            id: Some(id.into_u64()),
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut lines = self.0.lock();
        let span = lines.iter_mut().rfind(|line| line.id == Some(id.into_u64()) && !line.closed);
        values.record(&mut Fields(&mut span.unwrap().fields));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.0.lock().push(Line {
            name: fields.remove("message").unwrap_or_default(),
            target: event.metadata().target(),
            level: *event.metadata().level(),
            fields,
            inside: context.event_span(event).map(|span| span.name()),
            closed: false,
            id: None,
        });
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut lines = self.0.lock();
        let span = lines.iter_mut().rfind(|line| line.id == Some(id.into_u64()));
        span.unwrap().closed = true;
    }
}

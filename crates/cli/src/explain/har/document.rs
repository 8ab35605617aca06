use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::entry::Parts;
use super::{Entry, HarError, Problem};

/// One pass over a source.
pub(super) struct Reading<'f> {
    each: &'f mut dyn FnMut(Entry) -> ControlFlow<()>,
    /// Entries handed out.
    entries: usize,
    /// Whether a list of entries, or an entry by itself, was seen.
    is_har: bool,
    broken: bool,
}

impl<'f> Reading<'f> {
    pub(super) fn new(each: &'f mut dyn FnMut(Entry) -> ControlFlow<()>) -> Self {
        Self { each, entries: 0, is_har: false, broken: false }
    }

    /// Reads documents until the source ends: one of a HAR file, many of lines.
    pub(super) fn read(mut self, source: impl Read) -> Result<(), HarError> {
        let source = without_mark(source).map_err(|error| self.failed(Problem::of_io(&error)))?;
        let mut json = serde_json::Deserializer::from_reader(source);
        let mut documents = 0;
        while json.end().is_err() {
            let read = Document(&mut self).deserialize(&mut json);
            if self.broken {
                return Ok(());
            }
            read.map_err(|error| self.failed(Problem::of_json(&error)))?;
            documents += 1;
        }
        match (documents, self.is_har) {
            (0, _) => Err(self.failed(Problem::Empty)),
            (_, false) => Err(self.failed(Problem::NoEntries)),
            _ => Ok(()),
        }
    }

    fn failed(&self, problem: Problem) -> HarError {
        HarError { entries: self.entries, problem }
    }

    fn hand<E: Error>(&mut self, parts: &Parts) -> Result<(), E> {
        self.entries += 1;
        self.broken = (self.each)(parts.entry()).is_break();
        // The only way out of a document that isn't read to its end.
        if self.broken { Err(E::custom("left")) } else { Ok(()) }
    }
}

/// A whole HAR file, or an entry by itself.
struct Document<'r, 'f>(&'r mut Reading<'f>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut parts = Parts::default();
        while let Some(name) = map.next_key::<Box<str>>()? {
            match parts.named(&name) {
                Some(part) => *part = map.next_value()?,
                None if &*name == "log" => map.next_value_seed(Log(&mut *self.0))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if parts.is_entry() {
            self.0.is_har = true;
            self.0.hand(&parts)?;
        }
        Ok(())
    }
}

struct Log<'r, 'f>(&'r mut Reading<'f>);

impl<'de> DeserializeSeed<'de> for Log<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Log<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Box<str>>()? {
            match &*name {
                "entries" => map.next_value_seed(Entries(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Entries<'r, 'f>(&'r mut Reading<'f>);

impl<'de> DeserializeSeed<'de> for Entries<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.0.is_har = true;
        while let Some(entry) = entries.next_element::<Box<RawValue>>()? {
            let parts = serde_json::from_str(entry.get()).unwrap_or_default();
            self.0.hand(&parts)?;
        }
        Ok(())
    }
}

/// Windows tools begin a file with a byte order mark, which is no JSON.
fn without_mark(mut source: impl Read) -> std::io::Result<impl Read> {
    let mut start = Vec::with_capacity(MARK.len());
    source.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
    if start == MARK {
        start.clear();
    }
    Ok(std::io::Cursor::new(start).chain(source))
}

const MARK: &[u8] = b"\xef\xbb\xbf";

const EXPECTED: &str = "a HAR file with `log.entries`, or an entry with a `request`";

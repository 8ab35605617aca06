use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::entry::RawEntry;
use super::lenient::Lenient;
use super::{Entry, HarError, HarErrorKind};

/// A reader of the entries of one source.
pub(super) struct HarReader<'f> {
    each: &'f mut dyn FnMut(Entry) -> ControlFlow<()>,
    /// The number of entries read.
    entries: usize,
    /// True if a list of entries, or a single entry, was found.
    is_har: bool,
    broken: bool,
}

impl<'f> HarReader<'f> {
    pub(super) fn new(each: &'f mut dyn FnMut(Entry) -> ControlFlow<()>) -> Self {
        Self { each, entries: 0, is_har: false, broken: false }
    }

    /// Reads documents until the end: one of a HAR file, many of a file with one entry per line.
    pub(super) fn read(mut self, source: impl Read) -> Result<(), HarError> {
        let source =
            without_mark(source).map_err(|error| self.failed(HarErrorKind::of_io(&error)))?;
        let mut json = serde_json::Deserializer::from_reader(source);
        let mut documents = 0;
        while json.end().is_err() {
            let read = json.deserialize_map(Document(&mut self));
            if self.broken {
                return Ok(());
            }
            read.map_err(|error| self.failed(HarErrorKind::of_json(&error)))?;
            documents += 1;
        }
        match (documents, self.is_har) {
            (0, _) => Err(self.failed(HarErrorKind::Empty)),
            (_, false) => Err(self.failed(HarErrorKind::NoEntries)),
            _ => Ok(()),
        }
    }

    fn failed(&self, kind: HarErrorKind) -> HarError {
        HarError { entries: self.entries, kind }
    }

    /// Passes an entry to the callback. Returns an error if the callback breaks, since only an error
    /// stops the deserializer.
    fn call_back<E: Error>(&mut self, entry: RawEntry) -> Result<(), E> {
        self.entries += 1;
        self.broken = (self.each)(entry.into()).is_break();
        if self.broken { Err(E::custom("stopped")) } else { Ok(()) }
    }
}

/// A HAR file, or a single entry.
struct Document<'r, 'f>(&'r mut HarReader<'f>);

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut entry, mut is_entry) = (RawEntry::default(), false);
        while let Some(name) = map.next_key::<Box<str>>()? {
            match &*name {
                "log" => map.next_value_seed(Log(&mut *self.0))?,
                "request" => {
                    is_entry = true;
                    entry.request = map.next_value::<Lenient<_>>()?.0;
                }
                "response" => entry.response = map.next_value::<Lenient<_>>()?.0,
                "startedDateTime" => entry.started_date_time = map.next_value::<Lenient<_>>()?.0,
                "time" => entry.time = map.next_value::<Lenient<_>>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if is_entry {
            self.0.is_har = true;
            self.0.call_back(entry)?;
        }
        Ok(())
    }
}

struct Log<'r, 'f>(&'r mut HarReader<'f>);

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

struct Entries<'r, 'f>(&'r mut HarReader<'f>);

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
        while let Some(Lenient(entry)) = entries.next_element::<Lenient<RawEntry>>()? {
            self.0.call_back(entry)?;
        }
        Ok(())
    }
}

/// Skips a byte order mark, written by Windows tools.
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

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use compact_str::CompactString;
use serde::Deserialize;
use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A reader of a JSON value of any type. The default methods skip the value, so that an unexpected type
/// doesn't make the whole body unreadable.
pub(super) trait Walk<'de>: Sized {
    /// Reads a string, which is decoded.
    fn text(self, _text: &str) {}

    /// Reads a number that is not negative; fractions are cut off.
    fn number(self, _number: u64) {}

    /// Reads `true` or `false`.
    fn flag(self, _flag: bool) {}

    /// Reads `null`.
    fn null(self) {}

    /// Reads a list.
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    /// Reads an object.
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Skips a value.
impl Walk<'_> for () {}

/// Keeps a text.
impl Walk<'_> for &mut Option<CompactString> {
    fn text(self, text: &str) {
        *self = Some(text.into());
    }
}

/// Keeps a number, also one in a string, which servers in Python accept.
impl Walk<'_> for &mut Option<u64> {
    fn text(self, text: &str) {
        *self = text.trim().parse().ok().or(*self);
    }

    fn number(self, number: u64) {
        *self = Some(number);
    }
}

/// Keeps a flag.
impl Walk<'_> for &mut bool {
    fn flag(self, flag: bool) {
        *self = flag;
    }
}

/// A serde visitor that passes a value to a [`Walk`].
pub(super) struct Walker<W>(pub(super) W);

impl<'de, W: Walk<'de>> DeserializeSeed<'de> for Walker<W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, W: Walk<'de>> Visitor<'de> for Walker<W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.flag(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.number(value);
        Ok(())
    }

    fn visit_i64<E>(self, _negative: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        if value >= 0.0 {
            // The cast saturates.
            self.0.number(value as u64);
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0.text(value);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.null();
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.0.list(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        if *NUMBERS_ARE_MAPS { number_or_object(self.0, map) } else { self.0.object(map) }
    }
}

/// True if serde_json passes fractions to visitors as maps, which it does with its feature
/// `arbitrary_precision`. Another crate of the program may have enabled it.
static NUMBERS_ARE_MAPS: LazyLock<bool> = LazyLock::new(|| {
    struct Probe;
    impl<'de> Visitor<'de> for Probe {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
            Ok(false)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(true)
        }
    }
    serde_json::Deserializer::from_str("0.5").deserialize_any(Probe).unwrap_or(false)
});

/// Reads a map, which is a number if its only member has the name that serde_json uses for numbers.
fn number_or_object<'de, W, A>(walk: W, mut map: A) -> Result<(), A::Error>
where
    W: Walk<'de>,
    A: MapAccess<'de>,
{
    match map.next_key()? {
        Some(Name(name)) if name == NUMBER => {
            let mut text = Digits(None);
            map.next_value_seed(Walker(&mut text))?;
            // A client's object that happens to have such a member is not a number.
            let mut is_alone = true;
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                is_alone = false;
            }
            if let (Digits(Some(text)), true) = (text, is_alone) {
                read_digits(walk, &text);
            }
            Ok(())
        }
        first => walk.object(Members { first, map }),
    }
}

/// The text of a number.
struct Digits(Option<String>);

impl Walk<'_> for &mut Digits {
    fn text(self, text: &str) {
        self.0 = Some(text.to_owned());
    }
}

/// Reads a number that is written as text.
fn read_digits<'de, W: Walk<'de>>(walk: W, text: &str) {
    match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(number), _) => walk.number(number),
        // The cast saturates.
        (_, Ok(number)) if number >= 0.0 => walk.number(number as u64),
        (_, Ok(_)) => {}
        (_, Err(_)) => walk.text(text),
    }
}

/// The members of an object whose first name has already been read.
struct Members<'de, A> {
    first: Option<Name<'de>>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(Name(name)) => seed.deserialize(CowStrDeserializer::new(name)).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// The name of a member, borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The name of the member in which serde_json passes a number.
const NUMBER: &str = "$serde_json::private::Number";

#[cfg(test)]
mod tests {
    use serde::de::value::{Error, MapDeserializer};

    use super::*;

    #[test]
    fn number_is_read_in_both_forms_of_serde_json() {
        let cases = [("7", Some(7)), ("7.9", Some(7)), ("1e2", Some(100)), ("-7", None)];
        for (text, number) in cases {
            let mut read = None;
            let member = MapDeserializer::<_, Error>::new([(NUMBER, text)].into_iter());
            number_or_object(&mut read, member).unwrap();
            assert_eq!(read, number, "{text}");
            let mut read = None;
            let mut json = serde_json::Deserializer::from_str(text);
            Walker(&mut read).deserialize(&mut json).unwrap();
            assert_eq!(read, number, "{text}");
        }
    }
}

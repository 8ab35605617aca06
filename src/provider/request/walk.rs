use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads a JSON value of any type into whatever it borrows. What it does not name is read past, so
/// that one odd field does not make the whole body unreadable.
pub(super) trait Walk<'de>: Sized {
    /// A string, decoded.
    fn text(self, _text: &str) {}

    /// A number that is not negative; fractions are cut off.
    fn number(self, _number: u64) {}

    /// `true` or `false`.
    fn flag(self, _flag: bool) {}

    /// `null`
    fn null(self) {}

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Keeps the number, even one that stands in a text, which servers in Python read too.
impl Walk<'_> for &mut Option<u64> {
    fn text(self, text: &str) {
        *self = text.trim().parse().ok().or(*self);
    }

    fn number(self, number: u64) {
        *self = Some(number);
    }
}

/// Keeps the flag.
impl Walk<'_> for &mut bool {
    fn flag(self, flag: bool) {
        *self = flag;
    }
}

/// A walk as serde drives it.
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
        self.0.object(map)
    }
}

use serde::de::{MapAccess, SeqAccess};

use super::walk::{Walk, Walker};

/// Adds up the bytes of a value as compact JSON, without the client's spaces. Escapes count as the
/// characters that they encode, and `true`, `false` and `null` as four bytes.
pub(super) struct JsonSize<'a>(pub(super) &'a mut u64);

impl JsonSize<'_> {
    fn add(self, bytes: u64) {
        *self.0 = self.0.saturating_add(bytes);
    }
}

impl<'de> Walk<'de> for JsonSize<'_> {
    fn text(self, text: &str) {
        self.add(text.len() as u64 + 2);
    }

    fn number(self, number: u64) {
        self.add(u64::from(number.checked_ilog10().unwrap_or(0)) + 1);
    }

    fn flag(self, _flag: bool) {
        self.add(4);
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let size = self.0;
        *size += 1;
        while list.next_element_seed(Walker(JsonSize(size)))?.is_some() {
            *size += 1;
        }
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let size = self.0;
        *size += 1;
        while object.next_key_seed(Walker(JsonSize(size)))?.is_some() {
            object.next_value_seed(Walker(JsonSize(size)))?;
            *size += 2;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeSeed;

    use super::*;

    #[test]
    fn size_of_spaced_json_equals_compact_size() {
        for compact in ["0", "12", "true", r#""ab""#, "[1,2]", r#"{"a":1,"b":[{"c":"d"}]}"#] {
            let spaced = compact.replace(',', " , ").replace(':', " : ");
            let mut size = 0;
            let mut json = serde_json::Deserializer::from_str(&spaced);
            Walker(JsonSize(&mut size)).deserialize(&mut json).unwrap();
            assert_eq!(size, compact.len() as u64, "{compact}");
        }
    }
}

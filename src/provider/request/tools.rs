use serde::de::{MapAccess, SeqAccess};

use super::Request;
use super::body::Key;
use super::size::JsonSize;
use super::walk::{Walk, Walker};

/// A list of tools. Only functions are counted: what a built-in tool adds to the prompt, the
/// provider doesn't say.
pub(super) struct Tools<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Tools<'_> {
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut tool = Tool::default();
        while list.next_element_seed(Walker(&mut tool))?.is_some() {
            if tool.is_function {
                self.0.functions += 1;
                self.0.schema = self.0.schema.saturating_add(tool.size);
            }
            tool = Tool::default();
        }
        Ok(())
    }
}

/// The legacy `functions`: definitions without a type around them.
pub(super) struct Functions<'a>(pub(super) &'a mut Request);

impl<'de> Walk<'de> for Functions<'_> {
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(JsonSize(&mut self.0.schema)))?.is_some() {
            self.0.functions += 1;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Tool {
    is_function: bool,
    size: u64,
}

impl<'de> Walk<'de> for &mut Tool {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<Key>()? {
            match key {
                Key::Type => object.next_value_seed(Walker(IsFunction(&mut self.is_function)))?,
                _ => object.next_value_seed(Walker(JsonSize(&mut self.size)))?,
            }
            // About what the key takes.
            self.size = self.size.saturating_add(10);
        }
        Ok(())
    }
}

struct IsFunction<'a>(&'a mut bool);

impl Walk<'_> for IsFunction<'_> {
    fn text(self, text: &str) {
        *self.0 = text == "function";
    }
}

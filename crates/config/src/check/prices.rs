use std::fmt::Display;
use std::path::Path;

use paceline_provider::price::{Price, Prices};

use super::Check;
use crate::fields::{PriceFields, PricesFields};
use crate::tree::FieldPath;
use crate::watched_file;

impl Check<'_> {
    pub(super) fn prices(&mut self, fields: PricesFields) -> Prices {
        let root = FieldPath::new(["prices"]);
        let file = fields.file.and_then(|file| {
            let path = root.key("file");
            let file = self.path(&path, &file)?;
            read(&file).map_err(|message| self.report(&path, message)).ok()
        });
        let mut prices = file.unwrap_or_else(Prices::built_in);
        for (model, fields) in &fields.models.0 {
            if model.is_empty() {
                self.report_name(
                    &root.key("models").key(model),
                    "the name of a model must not be empty",
                );
            }
            prices = prices.with(model, price(fields));
        }
        prices
    }
}

fn read(file: &Path) -> Result<Prices, String> {
    let unreadable = |error: &dyn Display| format!("cannot read {}: {error}", file.display());
    let text = watched_file::read(file, MAX_FILE_SIZE).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(text).map_err(|error| unreadable(&error))?;
    Prices::from_litellm(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn price(fields: &PriceFields) -> Price {
    let mut price = Price::per_million(fields.input.usd(), fields.output.usd());
    if let Some(rate) = fields.cache_read {
        price = price.cache_read(rate.usd());
    }
    if let Some(rate) = fields.cache_write {
        price = price.cache_write(rate.usd());
    }
    if let Some(tokens) = fields.max_output {
        price = price.max_output(tokens.get());
    }
    if let Some(tokens) = fields.max_input {
        price = price.max_input(tokens.get());
    }
    price
}

/// The maximum size of a file in bytes; LiteLLM's has less than 2 MB.
const MAX_FILE_SIZE: u64 = 64 << 20;

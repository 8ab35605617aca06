//! Reads the amounts of a request in other units than tokens.

use super::medium::MediumKind;
use super::{Endpoint, Request, endpoint, flac, form, wav};
use crate::Unit;

impl Request {
    /// Returns the amount of a unit in a request with a JSON body; `None` if it has none.
    pub(crate) fn amount(&self, unit: Unit, path: &str) -> Option<u64> {
        let is_embedding = self.endpoint == Endpoint::Embeddings;
        match unit {
            Unit::Images if self.endpoint == Endpoint::Other && makes_images(path) => {
                Some(self.choices())
            }
            Unit::Images => Some(self.images()).filter(|images| is_embedding && *images > 0),
            // Token ids are one input, whatever their number.
            Unit::Inputs if is_embedding => {
                let inputs = self.items.saturating_add(self.texts);
                let least = u64::from(self.images() == 0);
                Some(inputs.max(least)).filter(|inputs| *inputs > 0)
            }
            Unit::Inputs | Unit::AudioSeconds => None,
        }
    }

    /// Returns the amount of a unit in a request whose body is a form; `None` if it has none.
    pub(crate) fn amount_in_form(unit: Unit, path: &str, body: &[u8]) -> Option<u64> {
        match unit {
            Unit::Images if makes_images(path) => Some(form::choices(body).unwrap_or(1).max(1)),
            Unit::AudioSeconds if reads_audio(path) => {
                let guess = || (body.len() as u64).div_ceil(BYTES_PER_SECOND);
                let stated = wav::seconds(body).or_else(|| flac::seconds(body));
                Some(stated.unwrap_or_else(guess))
            }
            Unit::Images | Unit::Inputs | Unit::AudioSeconds => None,
        }
    }

    fn images(&self) -> u64 {
        let images = self.media.iter().filter(|medium| medium.kind == MediumKind::Image);
        images.count() as u64
    }
}

/// Returns true for `images/generations`, `images/edits` and `images/variations`.
fn makes_images(path: &str) -> bool {
    endpoint::normalized(path).contains("/images/")
}

fn reads_audio(path: &str) -> bool {
    let path = endpoint::normalized(path);
    ["/audio/transcriptions", "/audio/translations"].iter().any(|end| path.ends_with(end))
}

/// The bytes of an upload for which one second is assumed if its length isn't known.
const BYTES_PER_SECOND: u64 = 16_000;

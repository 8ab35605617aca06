use saphyr_parser::{Event, Parser};

/// Returns true if a text is nested more than [`MAX_DEPTH`] levels deep. The time that the parser of
/// `serde_yaml` needs grows with the square of the depth; this one reports each level as it is read.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let mut depth = 0;
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::SequenceStart(..) | Event::MappingStart(..), _)) => depth += 1,
            Ok((Event::SequenceEnd | Event::MappingEnd, _)) => depth -= 1,
            Ok(_) => {}
            // Brackets are read ahead of the events. `serde_yaml` reports other errors.
            Err(error) => return error.info().to_lowercase().contains("recursion limit"),
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// The maximum depth; a state file has about ten levels.
pub(crate) const MAX_DEPTH: usize = 64;

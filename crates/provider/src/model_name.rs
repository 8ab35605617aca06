use compact_str::CompactString;

use paceline_limiter::quota::Key;
use paceline_limiter::seam;

/// Returns the name that all spellings of a model of Ollama's have in common, if it isn't this one: in lower case, without
/// the default tag, namespace and host.
pub(crate) fn unified(name: &str) -> Option<Key> {
    let is_plain =
        !name.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'/') && !name.ends_with(TAG);
    if is_plain {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let short = lower.strip_prefix(HOST).unwrap_or(&lower);
    let short = short.strip_prefix(NAMESPACE).unwrap_or(short);
    let short = short.strip_suffix(TAG).unwrap_or(short);
    (!short.is_empty() && short != name).then(|| seam::key_of(CompactString::new(short)))
}

/// Returns the names in lower case that have this unified name, and that name itself.
pub(crate) fn names(unified: &str) -> Vec<String> {
    let places = ["", NAMESPACE].into_iter().flat_map(|space| [("", space), (HOST, space)]);
    let tagged = places.flat_map(|place| [(place, ""), (place, TAG)]);
    tagged.map(|((host, space), tag)| format!("{host}{space}{unified}{tag}")).collect()
}

/// Returns the names under which a pattern may cover a model with this unified name.
pub(crate) fn spellings(name: &str) -> Vec<String> {
    let tagged = (!name.contains(':')).then(|| format!("{name}{TAG}"));
    let with_tag: Vec<_> = std::iter::once(name.to_owned()).chain(tagged).collect();
    let long = with_tag.iter().filter(|_| !name.contains('/'));
    let long: Vec<_> = long.map(|name| format!("{NAMESPACE}{name}")).collect();
    with_tag.into_iter().chain(long).collect()
}

const TAG: &str = ":latest";
const NAMESPACE: &str = "library/";
const HOST: &str = "registry.ollama.ai/";

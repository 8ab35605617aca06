use super::endpoint::{Endpoint, check, model_of, normalized};

/// Returns true if requests to a path have no model, so that their bodies need not be read.
pub(super) fn has_no_model(path: &str) -> bool {
    let path = &normalized(path);
    let segments = || path.rsplit('/');
    let is = |pattern: &&str| {
        let mut names = pattern.rsplit('/').zip(segments());
        names.all(|(name, segment)| name == "*" || name == segment)
            && segments().count() > pattern.split('/').count()
    };
    check(path).is_ok()
        && WITHOUT_MODEL.iter().any(is)
        && Endpoint::of(path).is_none()
        && model_of(path).is_none()
}

/// The ends of paths whose requests have no model; `*` is any segment.
const WITHOUT_MODEL: &[&str] = &[
    "files",
    "files/*",
    "files/*/content",
    "uploads",
    "uploads/*/parts",
    "uploads/*/complete",
    "uploads/*/cancel",
    "batches",
    "batches/*",
    "batches/*/cancel",
    "models",
    "vector_stores",
    "vector_stores/*",
    "vector_stores/*/file_batches",
    "containers",
    "containers/*",
    "datasets",
    "datasets/*",
    "documents",
    "documents/*",
    "skills",
    "skills/*",
    "skills/*/versions",
    "voices",
    "voices/*",
    "blobs/*",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_model_are_listed() {
        for path in [
            "/v1/files",
            "/v1/files/file-1/content",
            "/v1/uploads/upload_1/complete",
            "/openai//files/",
            "/v1/messages/batches",
            "/v1/vector_stores/vs_1/files",
            "/api/blobs/sha256:0",
            "/v1/models",
        ] {
            assert!(has_no_model(path), "{path}");
        }
        for path in [
            "files",
            "/v1/files/completions",
            "/v1/complete",
            "/v1/files/chat/completions",
            "/v1/models/m",
            "/v1/models/m:generateContent",
            "/v1/chat/completions;/files",
            "/v1/chat/completions%3F/files",
            "/deployments/m/files",
            "/v1/images/edits",
            "/",
            "",
        ] {
            assert!(!has_no_model(path), "{path}");
        }
    }
}

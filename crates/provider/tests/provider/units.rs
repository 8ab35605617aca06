//! Quantities other than requests and tokens that providers limit: images, seconds of audio, inputs.

use http::{HeaderMap, HeaderValue, header};
use paceline_limiter::limiter::{Code, Limiter};
use paceline_limiter::quota::{Cost, Dimension, Limit, Quota};
use paceline_provider::{COHERE, GROQ, OPENAI, Profile, Unit};

fn amounts(profile: Profile, path: &str, body: &[u8]) -> Vec<(String, u64)> {
    let cost = profile.read_request(path, body).cost;
    cost.customs().map(|(name, amount)| (name.to_owned(), amount)).collect()
}

fn one(name: &str, amount: u64) -> Vec<(String, u64)> {
    vec![(name.to_owned(), amount)]
}

/// Returns a form with a file and another field.
fn form(file: &[u8], field: (&str, &str)) -> Vec<u8> {
    let (name, value) = field;
    let mut form =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n".to_vec();
    form.extend_from_slice(file);
    let rest = format!(
        "\r\n--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n--b\r\n\
         Content-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n"
    );
    form.extend_from_slice(rest.as_bytes());
    form
}

/// Returns a WAV file of 16,000 samples of 2 bytes per second, with a chunk before its data.
fn wav(bytes: usize, stated: u32) -> Vec<u8> {
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    for number in [16_000_u32, 32_000] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(b"\x02\0\x10\0LIST\x03\0\0\0abc\0data");
    file.extend_from_slice(&stated.to_le_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

/// Returns the start of a FLAC file of two channels with 16 bits, with this rate and number of samples, as RFC 9639
/// encodes STREAMINFO.
fn flac(rate: u64, samples: u64) -> Vec<u8> {
    let mut file = b"fLaC\x80\0\0\x22\x10\0\x10\0\0\0\x0f\0\0\x0f".to_vec();
    let fields = (rate << 44) | (1 << 41) | (15 << 36) | samples;
    file.extend_from_slice(&fields.to_be_bytes());
    file.resize(file.len() + 16 + 32_000, 0);
    file
}

/// "RPM, RPD, TPM, TPD, and IPM (images per minute)": developers.openai.com, "Rate limits". The bodies are those of
/// "Create image" and "Create image edit" in its API reference.
#[test]
fn openai_counts_the_images_that_are_asked_for() {
    let path = "/v1/images/generations";
    let body = br#"{"model": "gpt-image-2", "prompt": "A cute baby sea otter", "n": 2}"#;
    assert_eq!(amounts(OPENAI, path, body), one("images", 2));
    let body = br#"{"model": "gpt-image-2", "prompt": "A cute baby sea otter"}"#;
    assert_eq!(amounts(OPENAI, path, body), one("images", 1));
    let edit = form(b"\x89PNG", ("n", "3"));
    assert_eq!(amounts(OPENAI, "/v1/images/edits", &edit), one("images", 3));
    let edit = form(b"\x89PNG", ("prompt", "3"));
    assert_eq!(
        amounts(OPENAI, "https://api.openai.com/v1/images/edits?a", &edit),
        one("images", 1)
    );
    let chat = br#"{"model": "gpt-4o", "n": 2, "messages": [{"role": "user", "content": "Hi"}]}"#;
    assert_eq!(amounts(OPENAI, "/v1/chat/completions", chat), []);
    assert_eq!(amounts(OPENAI, "/v1/chat/completions?x=/images/", chat), []);
}

/// "Embed 2,000 inputs / min, Embed (Images) 400 inputs / min": docs.cohere.com/docs/rate-limits. The bodies are
/// those of its "Embed API (v2)", "Embed API (v1)" and "Embeddings via the compatibility API".
#[test]
fn cohere_counts_texts_and_images_of_embeddings_apart() {
    let texts = br#"{"model": "embed-v4.0", "texts": ["hello", "goodbye"], "input_type": "classification"}"#;
    assert_eq!(amounts(COHERE, "/v2/embed", texts), one("inputs", 2));
    assert_eq!(amounts(COHERE, "/v1/embed", texts), one("inputs", 2));
    let compatible = br#"{"model": "embed-v4.0", "input": "Hello", "encoding_format": "float"}"#;
    assert_eq!(amounts(COHERE, "/compatibility/v1/embeddings", compatible), one("inputs", 1));
    let images = br#"{"model": "embed-v4.0", "images": ["data:image/png;base64,iVBORw0KGgo="]}"#;
    assert_eq!(amounts(COHERE, "/v2/embed", images), one("images", 1));
    let mixed = br#"{"model": "embed-v4.0", "inputs": [
        {"content": [{"type": "text", "text": "a"},
                     {"type": "image_url", "image_url": {"url": "https://e.example/a.png"}}]},
        {"content": [{"type": "text", "text": "b"}]}]}"#;
    let both = vec![("inputs".to_owned(), 2), ("images".to_owned(), 1)];
    assert_eq!(amounts(COHERE, "/v2/embed", mixed), both);
    let chat = br#"{"model": "command-a", "messages": [{"role": "user", "content": "Hi"}]}"#;
    assert_eq!(amounts(COHERE, "/v2/chat", chat), []);
}

/// "ASH: Audio seconds per hour, ASD: Audio seconds per day": console.groq.com/docs/rate-limits.
#[test]
fn groq_counts_the_seconds_of_uploaded_audio() {
    let path = "/openai/v1/audio/transcriptions";
    let seconds = |file: &[u8]| amounts(GROQ, path, &form(file, ("language", "en")));
    assert_eq!(seconds(&wav(64_000, 64_000)), one("audio_seconds", 2));
    assert_eq!(seconds(&wav(64_001, 64_001)), one("audio_seconds", 3));
    // The header is cut, names no rate, or the file is of another format: 16,000 bytes are a second.
    assert_eq!(seconds(b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0"), one("audio_seconds", 1));
    assert_eq!(seconds(&[b'x'; 160_000]), one("audio_seconds", 11));
    // A recorder that streams doesn't know the size: the rest of the form is taken for audio.
    for unknown in [0, u32::MAX] {
        assert_eq!(seconds(&wav(63_000, unknown)), one("audio_seconds", 2));
    }
    assert_eq!(seconds(&flac(48_000, 168_000)), one("audio_seconds", 4));
    assert_eq!(seconds(&flac(44_100, 44_100 * 3_600)), one("audio_seconds", 3_600));
    // The samples or the rate are unknown.
    let guessed = one("audio_seconds", 3);
    assert_eq!((seconds(&flac(48_000, 0)), seconds(&flac(0, 9))), (guessed.clone(), guessed));
    assert_eq!(amounts(GROQ, "/openai/v1/audio/speech", b"{\"input\": \"Hi\"}"), []);
}

#[test]
fn strict_reading_has_the_same_units() {
    let mut headers = HeaderMap::new();
    let kind = HeaderValue::from_static("multipart/form-data; boundary=b");
    headers.insert(header::CONTENT_TYPE, kind);
    let body = form(&wav(64_000, 64_000), ("language", "en"));
    let path = "/openai/v1/audio/transcriptions";
    let (estimate, unreadable) = GROQ.read_request_strictly(path, &headers, &body);
    assert_eq!((estimate.cost.amount(&Unit::AudioSeconds.dimension()), unreadable), (2, None));
}

#[test]
fn units_need_no_limit_unless_the_caller_sets_them() {
    let body = br#"{"model": "m", "prompt": "A gate", "n": 2}"#;
    let cost = OPENAI.read_request("/v1/images/generations", body).cost;
    let images = Limit::per_minute(Dimension::custom("images"), 3);
    let limiter = Limiter::builder()
        .provider(OPENAI)
        .quota("tokens", Quota::new().rpm(10).tpm(10_000))
        .quota("images", Quota::new().rpm(10).limit(images))
        .build()
        .unwrap();
    let code =
        |key: &str, cost: &Cost| limiter.try_acquire(key, cost).err().map(|refused| refused.code);
    let requested = Quota::new().rpm(10).tpm(10_000).itpm(10_000);
    assert!(limiter.acquire("other", &cost).limits(&requested).try_now().is_ok());
    assert_eq!(code("tokens", &cost), None);
    assert_eq!(
        code("tokens", &cost.clone().requests(2)),
        None,
        "a changed cost keeps the unit optional"
    );
    assert_eq!(code("tokens", &Cost::new().custom("images", 2)), Some(Code::MissingLimit));
    assert_eq!(code("images", &cost), None);
    assert_eq!(code("images", &cost), Some(Code::LimitExceeded), "4 images of 3 per minute");
}

/// docs.cohere.com/docs/rate-limits: the production limits of Embed.
#[test]
fn cohere_embeddings_have_built_in_quotas() {
    let limiter = Limiter::builder().provider(COHERE).build().unwrap();
    let embed = |model: &str, texts: usize| {
        let texts = vec!["a"; texts];
        let body = serde_json::json!({"model": model, "texts": texts}).to_string();
        let estimate = COHERE.read_request("/v2/embed", body.as_bytes());
        limiter.try_acquire(model, &estimate.cost).is_ok()
    };
    assert!(embed("embed-v4.0", 1_999));
    assert!(!embed("embed-english-v3.0", 2), "all models share 2,000 inputs per minute");
    assert!(embed("embed-english-v3.0", 1));
}

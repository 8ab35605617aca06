use serde_json::Value;

use super::{Rig, answer, with};

/// What a reader of README.md copies first.
#[tokio::test]
async fn the_calls_of_the_readme_are_answered() {
    let rig = Rig::start("").await;
    let readme = include_str!("../../../../../README.md");
    // Others are asked of `tollgate simulate`.
    let is_ours = |line: &&str| line.starts_with("curl ") && line.contains("127.0.0.1:8080");
    let calls: Vec<_> = readme.lines().filter(is_ours).collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    for call in calls {
        let (_, path) = call.split_once("http://127.0.0.1:8080").expect("the server");
        let path = path.split([' ', '\'']).next().expect("a path");
        let body = call.split_once("--json '").and_then(|(_, rest)| rest.split('\'').next());
        let body = body.map_or(Value::Null, |body| serde_json::from_str(body).expect("JSON"));
        let answer = answer(with(rig.request("POST", path), &body)).await;
        assert!(matches!(answer.status, 200 | 201), "{call}: {answer:?}");
    }
}

//! Checks the server against its OpenAPI document with schemathesis.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use paceline_serve::{Server, Tokens};
use serde_json::Value;

use super::{ADMIN, Rig};
use paceline_testing::full::full_or;

#[tokio::test]
async fn document_lists_paths_and_key_length() {
    let rig = Rig::start("serve: {bounds: {key: 99}}").await;
    let response = rig.get("/openapi.json").await;
    assert_eq!(response.assert_status(200).header("content-type"), "application/json");
    assert_eq!(response.body["openapi"], "3.1.0");
    assert_eq!(response.body["paths"].as_object().unwrap().len(), 19);
    assert_eq!(response.body["components"]["schemas"]["Key"]["maxLength"], 99);
}

/// Sends each documented request, and a request with another method to each documented path.
#[tokio::test]
async fn documented_methods_match_the_router() {
    let rig = Rig::start("").await;
    let document = rig.get("/openapi.json").await;
    for (path, operations) in document.assert_status(200).body["paths"].as_object().unwrap() {
        let operations = operations.as_object().unwrap();
        let path = path.replace("{key}", "k").replace("{name}", "k").replace("{id}", "0");
        for method in operations.keys() {
            let response = rig.send(&method.to_uppercase(), &path, &Value::Null).await;
            let code = response.body["code"].as_str().unwrap_or_default();
            assert_ne!(response.status, 405, "{method} {path}");
            assert!(!["unknown_path", "unknown_upstream"].contains(&code), "{method} {path}");
        }
        let response = rig.send("PATCH", &path, &Value::Null).await;
        assert_eq!(response.status, 405, "{path}");
        let allowed = response.header("allow").split(',').map(|name| name.trim().to_lowercase());
        let allowed: BTreeSet<_> = allowed.filter(|name| name != "head").collect();
        assert_eq!(allowed, operations.keys().cloned().collect(), "{path}");
    }
}

/// The schemas come from the types; this checks statuses, content types, bounds and authorization.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_conforms_to_document() {
    let Some(schemathesis) = Schemathesis::installed() else { return };
    let config = paceline_serve::parse(CONFIG).unwrap();
    let limiter = config.builder().build().unwrap();
    let mut tokens = Tokens::default();
    (tokens.client, tokens.admin) = (Some("a client's".to_owned()), Some(ADMIN.to_owned()));
    let server = Server::bind(config, limiter, tokens).await.unwrap();
    schemathesis.check(&format!("http://{}/openapi.json", server.addr())).await;
    server.shutdown().await.unwrap();
}

/// schemathesis in a virtual environment.
struct Schemathesis(PathBuf);

impl Schemathesis {
    /// Installs it if necessary. Returns `None` and prints the reason if that fails.
    ///
    /// # Panics
    /// Panics if the installation fails and `CI` is `true`.
    fn installed() -> Option<Self> {
        match install() {
            Ok(program) => Some(Self(program)),
            Err(reason) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
                panic!("schemathesis can't be installed: {reason}")
            }
            Err(reason) => {
                println!("left out: schemathesis can't be installed: {reason}");
                None
            }
        }
    }

    /// Runs all checks on all operations.
    async fn check(&self, document: &str) {
        let folder = tempfile::tempdir().unwrap();
        let output = tokio::process::Command::new(&self.0)
            .arg("--config-file")
            .arg(folder_of_tests().join("schemathesis.toml"))
            .args(["run", document, "--checks", "all", "--continue-on-failure"])
            // With several workers, threads fail occasionally before CPython 3.11.8
            // (python/cpython#106905).
            .args(["--max-time", full_or("25", "5"), "--workers", "1", "--seed", "7"])
            .args(["--header", &format!("Authorization: Bearer {ADMIN}")])
            .args(["--suppress-health-check", "all"])
            .current_dir(folder.path())
            .envs([("NO_PROXY", "127.0.0.1"), ("NO_COLOR", "1")])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("schemathesis starts");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
        // At least one check ran.
        assert!(out.contains("generated"), "{out}");
    }
}

/// Returns the program of a complete environment, marked by a copy of the requirements.
fn install() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi-venv");
    let (python, stamp) = (environment.join("bin/python"), environment.join("installed.txt"));
    let program = environment.join("bin/schemathesis");
    let requirements = folder_of_tests().join("requirements.txt");
    let expected = fs::read_to_string(&requirements).map_err(|error| error.to_string())?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == expected) {
        return Ok(program);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(pip).arg(&requirements))?;
    fs::write(&stamp, expected).map_err(|error| error.to_string())?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let failure = || format!("{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output.status.success().then_some(()).ok_or_else(failure)
}

fn folder_of_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Short waits, and keys longer than any generated one.
const CONFIG: &str = "
quotas: {model: {rpm: 100000}}
waiting: {max_wait: 20ms}
serve: {listen: '127.0.0.1:0', bounds: {key: 4096}, requests_can_set_rate: true, \
    requests_can_mod_queue: true}
";

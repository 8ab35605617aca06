//! The document, held against the server by schemathesis: whatever it says, the server does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tollgate_serve::{Server, Tokens};

use super::{ADMIN, Rig};
use tollgate_testing::full::full_or;

#[tokio::test]
async fn the_document_tells_every_route() {
    let rig = Rig::start("serve: {bounds: {key: 99}}").await;
    let answer = rig.get("/openapi.json").await;
    assert_eq!(answer.is(200).header("content-type"), "application/json");
    assert_eq!(answer.body["openapi"], "3.1.0");
    let paths = answer.body["paths"].as_object().unwrap();
    for path in [
        "/v1/reserve",
        "/v1/reservations/{id}",
        "/v1/reservations/{id}/settle",
        "/v1/reservations/{id}/release",
        "/v1/reservations/{id}/renew",
        "/v1/decide",
        "/v1/stats",
        "/v1/stats/{key}",
        "/v1/quotas",
        "/v1/quotas/{name}",
        "/v1/reset",
        "/rate/{key}",
        "/rate/{key}/{id}",
        "/debug",
        "/debug/{key}",
        "/healthz",
        "/readyz",
        "/metrics",
    ] {
        let operations = paths.get(path).unwrap_or_else(|| panic!("{path}")).as_object().unwrap();
        for (method, operation) in operations {
            assert!(operation["operationId"].is_string(), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
    assert_eq!(answer.body["components"]["schemas"]["Key"]["maxLength"], 99);
}

/// The types themselves are the document's, so this is about what they don't say: statuses, content
/// types, bounds, who is let in, and what the routes of others do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_does_what_its_document_says() {
    let Some(schemathesis) = Schemathesis::installed() else { return };
    let config = tollgate_serve::parse(CONFIG).unwrap();
    let limiter = config.builder().build().unwrap();
    let mut tokens = Tokens::default();
    (tokens.client, tokens.admin) = (Some("a client's".to_owned()), Some(ADMIN.to_owned()));
    let server = Server::bind(config, limiter, tokens).await.unwrap();
    schemathesis.check(&format!("http://{}/openapi.json", server.addr())).await;
    server.shutdown().await.unwrap();
}

/// schemathesis in a virtual environment of its own.
struct Schemathesis(PathBuf);

impl Schemathesis {
    /// Installs it if need be; `None`, and a line that says so, where that can't be done.
    ///
    /// # Panics
    /// It can't be done, and `CI` is `true`.
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

    /// Every check it has, of every operation in the document.
    async fn check(&self, document: &str) {
        let folder = tempfile::tempdir().unwrap();
        let output = tokio::process::Command::new(&self.0)
            .arg("--config-file")
            .arg(folder_of_tests().join("schemathesis.toml"))
            .args(["run", document, "--checks", "all", "--continue-on-failure"])
            // One worker: threads that read Python at a time fail now and then before CPython 3.11.8
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
            .expect("it starts");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
        // It has checked something.
        assert!(out.contains("generated"), "{out}");
    }
}

/// The program of an environment that is complete: its last file is a copy of the requirements.
fn install() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi-venv");
    let (python, stamp) = (environment.join("bin/python"), environment.join("installed.txt"));
    let program = environment.join("bin/schemathesis");
    let requirements = folder_of_tests().join("requirements.txt");
    let wanted = fs::read_to_string(&requirements).map_err(|error| error.to_string())?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(pip).arg(&requirements))?;
    fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let told = || format!("{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output.status.success().then_some(()).ok_or_else(told)
}

fn folder_of_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits are short, and keys may be longer than any that is made up.
const CONFIG: &str = "
quotas: {model: {rpm: 100000}}
waiting: {max_wait: 20ms}
serve: {listen: '127.0.0.1:0', bounds: {key: 4096}, requests_can_set_rate: true, \
    requests_can_mod_queue: true}
";

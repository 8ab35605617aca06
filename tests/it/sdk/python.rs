//! Python with the SDKs of `tests/sdk/requirements.txt`, installed once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// An interpreter in a virtual environment that has the SDKs.
#[derive(Debug)]
pub(crate) struct Python(PathBuf);

impl Python {
    /// Installs what is not there yet; `None`, and a line that says so, where that can't be done.
    ///
    /// # Panics
    ///
    /// It can't be done, and `CI` is `true`.
    pub(crate) fn with_sdks() -> Option<Self> {
        match install() {
            Ok(python) => Some(Self(python)),
            Err(reason) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
                panic!("the Python SDKs can't be installed: {reason}")
            }
            Err(reason) => {
                println!("left out: the Python SDKs can't be installed: {reason}");
                None
            }
        }
    }

    /// The lines of JSON that a script of `tests/sdk` prints.
    pub(crate) async fn run(&self, script: &str, env: &[(&str, String)]) -> Vec<Value> {
        let output = tokio::process::Command::new(&self.0)
            .arg(folder().join(script))
            .envs(env.iter().map(|(name, value)| (name, value)))
            .envs([
                ("NO_PROXY", "127.0.0.1"),
                ("PYTHONWARNINGS", "ignore"),
                ("PYTHONDONTWRITEBYTECODE", "1"),
            ])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("the interpreter starts");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{script} fails:\n{out}\n{err}");
        let line = |line: &str| serde_json::from_str(line).expect("a line is JSON");
        out.lines().map(line).collect()
    }
}

/// The interpreter of an environment that is complete: its last file is a copy of the requirements.
fn install() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-venv");
    let (python, stamp) = (environment.join("bin/python"), environment.join("installed.txt"));
    let requirements = folder().join("requirements.txt");
    let wanted = fs::read_to_string(&requirements).map_err(|error| error.to_string())?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(pip).arg(&requirements))?;
    fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let told = || format!("{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output.status.success().then_some(()).ok_or_else(told)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

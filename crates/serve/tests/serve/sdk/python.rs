//! Python with the SDKs of `tests/sdk/requirements.txt`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::install::{installed, output, run, scripts};

/// An interpreter in a virtual environment with the SDKs.
#[derive(Debug)]
pub(crate) struct Python(PathBuf);

impl Python {
    /// Installs missing packages. Returns `None` and prints the reason if that fails.
    ///
    /// # Panics
    /// Panics if the installation fails and `CI` is `true`.
    pub(crate) fn with_sdks() -> Option<Self> {
        installed("Python", install).map(Self)
    }

    /// The path of the interpreter.
    pub(crate) fn interpreter(&self) -> &Path {
        &self.0
    }

    /// Runs a script of `tests/sdk`, and returns the JSON lines that it prints.
    pub(crate) async fn run(&self, script: &str, env: &[(&str, String)]) -> Vec<Value> {
        let mut command = Command::new(&self.0);
        command.arg(scripts().join(script));
        command.envs([("PYTHONWARNINGS", "ignore"), ("PYTHONDONTWRITEBYTECODE", "1")]);
        output(command, script, env).await
    }
}

/// Returns the interpreter of a complete environment, marked by a copy of the requirements.
fn install() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-venv");
    let (python, stamp) = (environment.join("bin/python"), environment.join("installed.txt"));
    let requirements = scripts().join("requirements.txt");
    let expected = fs::read_to_string(&requirements).map_err(|error| error.to_string())?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == expected) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(&python).args(pip).arg(&requirements))?;
    fs::write(&stamp, expected).map_err(|error| error.to_string())?;
    Ok(python)
}

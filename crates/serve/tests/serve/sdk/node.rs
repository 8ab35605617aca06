//! Node with the SDKs of `tests/sdk/node/package-lock.json`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::install::{installed, output, run, scripts};

/// A folder with the SDKs and the scripts.
#[derive(Debug)]
pub(crate) struct Node(PathBuf);

impl Node {
    /// Installs missing packages. Returns `None` and prints the reason if that fails.
    ///
    /// # Panics
    /// Panics if the installation fails and `CI` is `true`.
    pub(crate) fn with_sdks() -> Option<Self> {
        installed("Node", install).map(Self)
    }

    /// Runs a script of `tests/sdk/node`, and returns the JSON lines that it prints.
    pub(crate) async fn run(&self, script: &str, env: &[(&str, String)]) -> Vec<Value> {
        let mut command = Command::new("node");
        command.arg(self.0.join(script));
        output(command, script, env).await
    }
}

/// Returns a complete folder, marked by a copy of the lock file. The scripts are next to the packages
/// that they import.
fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk-node");
    let to_text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(&folder).map_err(to_text)?;
    for file in fs::read_dir(scripts().join("node")).map_err(to_text)? {
        let file = file.map_err(to_text)?;
        fs::copy(file.path(), folder.join(file.file_name())).map_err(to_text)?;
    }
    let stamp = folder.join("installed.json");
    let expected = fs::read_to_string(folder.join("package-lock.json")).map_err(to_text)?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == expected) {
        return Ok(folder);
    }
    let clean = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run(Command::new("npm").args(clean).current_dir(&folder))?;
    fs::write(&stamp, expected).map_err(to_text)?;
    Ok(folder)
}

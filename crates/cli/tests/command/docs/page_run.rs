use std::path::Path;
use std::process::{Command, Stdio};

use paceline_testing::markdown::{Block, root};
use paceline_testing::process::InteractiveProcess;
use serde_json::Value;

use super::project_command::{ProjectCommand, project_command};
use super::transcript::{entries, normalized};
use crate::cli::rig::{TestHome, output_of};

/// The addresses of the server and the simulated provider in pages.
const SERVER: &str = "127.0.0.1:8080";
const PROVIDER: &str = "127.0.0.1:8089";

/// Runs the blocks of a page in order, in one directory.
///
/// Addresses in the page are replaced with those of the started servers, and URLs of real providers
/// with that of the simulated one.
pub(super) struct PageRun {
    home: TestHome,
    /// The `export` lines so far.
    exports: String,
    servers: Vec<InteractiveProcess>,
    server: Option<String>,
    provider: String,
}

impl PageRun {
    /// Starts the simulated provider.
    pub(super) fn new() -> Self {
        let home = TestHome::new();
        let requests = file("examples/requests.jsonl");
        let few: Vec<_> = requests.lines().take(5).collect();
        home.write("examples/requests.jsonl", &few.join("\n"));
        home.write("examples/recording.har", &file("examples/recording.har"));
        home.write("prompts.jsonl", PROMPTS);
        home.write("ratelimits.yaml", &file("crates/store/tests/store/fixtures/ratelimits.yaml"));
        let mut run = Self {
            home,
            exports: "export OPENAI_API_KEY=any ANTHROPIC_API_KEY=any\n".to_owned(),
            servers: Vec::new(),
            server: None,
            provider: PROVIDER.to_owned(),
        };
        run.start("simulate --listen 127.0.0.1:0");
        run
    }

    /// Runs the blocks.
    ///
    /// # Panics
    /// Panics if a block fails.
    pub(super) fn run(mut self, blocks: &[Block]) {
        for block in blocks {
            match block.language.as_str() {
                "console" => self.console(block),
                "json" => drop(serde_json::from_str::<Value>(&block.text).expect(&block.place)),
                "jsonl" => block.text.lines().for_each(|line| {
                    drop(serde_json::from_str::<Value>(line).expect(&block.place));
                }),
                "sh" => self.shell(block),
                "toml" => self.manifest(block),
                "yaml" => self.configuration(block),
                _ => {}
            }
        }
    }

    fn console(&mut self, block: &Block) {
        for entry in entries(&block.text) {
            let (place, command) = (&block.place, &entry.command);
            let (_, output) = self.execute(command);
            let (shown, real) = (normalized(&entry.output), normalized(&output));
            assert!(!shown.is_empty(), "{place}: {command}: no output is shown");
            assert_eq!(shown, real, "{place}: {command}:\n{output}");
        }
    }

    fn shell(&mut self, block: &Block) {
        for command in block.text.replace("\\\n", " ").lines() {
            let (place, words) = (&block.place, command.trim());
            if words.is_empty() || words.starts_with('#') {
            } else if words.starts_with("export ") {
                self.exports.push_str(&format!("{words}\n"));
            } else if let Some(arguments) = background(words) {
                self.start(arguments);
            } else {
                let (succeeded, output) = self.execute(words);
                assert!(succeeded, "{place}: {words}:\n{output}");
            }
        }
    }

    /// Starts `paceline simulate` or `paceline serve` on a free port.
    fn start(&mut self, arguments: &str) {
        let arguments = self.replaced(arguments).replace(&self.provider, "127.0.0.1:0");
        let arguments = match arguments.starts_with("serve") {
            true => format!("{arguments} --port 0"),
            false if arguments.contains("--listen") => arguments,
            false => format!("{arguments} --listen 127.0.0.1:0"),
        };
        let mut command = self.home.paceline(&arguments);
        let mut process = InteractiveProcess::start(command.stderr(Stdio::null()));
        let line = process.read_line().expect("the server prints its address");
        let address = line.strip_prefix("listening on http://").expect("an address").to_owned();
        match arguments.starts_with("serve") {
            true => self.server = Some(address),
            false => self.provider = address,
        }
        self.servers.push(process);
    }

    /// Runs a command to its end. Returns true if it succeeded, and its output.
    fn execute(&self, command: &str) -> (bool, String) {
        let command = match project_command(command) {
            Some(ProjectCommand::Checked) => return (true, String::new()),
            Some(ProjectCommand::Paceline(arguments)) => format!("paceline {arguments}"),
            None => command.to_owned(),
        };
        let mut command = self.replaced(&command).replace("curl ", "curl -sS --fail-with-body ");
        // Pages never send requests to a real provider.
        if command.starts_with("paceline batch") && !command.contains("--base-url") {
            command = format!("{} --simulate", command.replace(" --simulate", ""));
        }
        let paceline = self.home.paceline("");
        let folder = Path::new(paceline.get_program()).parent().expect("a folder");
        let path = std::env::var("PATH").expect("a PATH");
        let mut shell = Command::new("sh");
        shell.envs(paceline.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("PATH", format!("{}:{path}", folder.display()));
        shell.current_dir(self.home.path("")).stdin(Stdio::null());
        shell.args(["-c", &format!("{}exec 2>&1\n{command}", self.exports)]);
        let output = output_of(&mut shell);
        (output.code == Some(0), output.stdout)
    }

    /// Loads a complete configuration file, named in its first line; a file named `bad*` must be invalid.
    fn configuration(&self, block: &Block) {
        let place = &block.place;
        let name = block.text.lines().next().and_then(|line| line.strip_prefix("# "));
        let name = name.unwrap_or_else(|| panic!("{place}: the first line names no file"));
        let provider = format!("http://{}", self.provider);
        let text = self.replaced(&block.text);
        let text = text.replace("https://api.openai.com", &provider);
        self.home.write(name, &text.replace("https://api.anthropic.com", &provider));
        let output = self.home.run(&format!("config check {name}"));
        let code = if name.starts_with("bad") { 2 } else { 0 };
        assert_eq!(output.code, Some(code), "{place}: {output:?}");
    }

    /// Checks the dependencies of a manifest: features of paceline must exist, and other dependencies
    /// must have the versions of this repository.
    fn manifest(&self, block: &Block) {
        let package = "[package]\nname = \"reader\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        let manifest = self.home.write("reader/Cargo.toml", &format!("{package}{}", block.text));
        self.home.write("reader/src/main.rs", "fn main() {}\n");
        let (reader, own) = (package_of(&manifest), package_of(&root().join("Cargo.toml")));
        for dependency in list(&reader["dependencies"]) {
            let (place, name) = (&block.place, &dependency["name"]);
            if name == "paceline" {
                for feature in list(&dependency["features"]).iter().filter_map(Value::as_str) {
                    assert!(
                        own["features"].get(feature).is_some(),
                        "{place}: no feature {feature}"
                    );
                }
                continue;
            }
            let mut known = list(&own["dependencies"]).iter();
            let is_known = known.any(|d| d["name"] == *name && d["req"] == dependency["req"]);
            assert!(is_known, "{place}: {name} has another version in Cargo.toml");
        }
    }

    fn replaced(&self, text: &str) -> String {
        let text = text.replace(PROVIDER, &self.provider);
        match &self.server {
            Some(server) => text.replace(SERVER, server),
            None => text,
        }
    }
}

/// Returns the metadata of a package, from cargo.
fn package_of(manifest: &Path) -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"]);
    let output = output_of(cargo.arg(manifest));
    assert_eq!(output.code, Some(0), "{output:?}");
    let packages = &output.json()["packages"];
    let of = |package: &&Value| package["manifest_path"] == manifest.to_str().expect("UTF-8");
    list(packages).iter().find(of).expect("the package").clone()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Returns the text of a file in the repository.
fn file(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the arguments of a `paceline` command that is started in the background.
fn background(command: &str) -> Option<&str> {
    let command = command.split(" #").next()?.trim();
    command.strip_prefix("paceline ")?.strip_suffix('&').map(str::trim)
}

const PROMPTS: &str = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Name three rivers."}], "max_tokens": 50}
{"model": "gpt-4o", "messages": [{"role": "user", "content": "Name three lakes."}], "max_tokens": 50}
"#;

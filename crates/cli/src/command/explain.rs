use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use crate::explain::har::{self, Entry};
use crate::explain::{HEADING, Line, Row, Summary, explain};
use crate::terminal::say;

/// The arguments of `tollgate explain`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ExplainArgs {
    /// Recordings: HAR files, or one HAR entry per line; `-` reads standard input
    #[arg(value_name = "FILE.har", required = true)]
    pub files: Vec<PathBuf>,

    /// Write one line of JSON per exchange; the summary goes to standard error
    #[arg(long)]
    pub json: bool,
}

impl ExplainArgs {
    /// Explains every file to `out`, as far as each can be read.
    ///
    /// # Errors
    /// Says why `out` can't be written to. One that was closed is no error.
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, String> {
        let mut session =
            Session { json: self.json, out, summary: Summary::default(), written: Ok(()) };
        let mut unread = 0;
        for file in &self.files {
            if let Err(reason) = session.file(file) {
                unread += 1;
                say(&format_args!("{}: {reason}", file.display()));
            }
            if session.written.is_err() {
                return session.ended();
            }
        }
        session.summarize();
        match unread {
            0 => session.ended(),
            _ => session.ended().map(|_| Exit::Stopped),
        }
    }
}

struct Session<'o> {
    json: bool,
    out: &'o mut dyn Write,
    summary: Summary,
    written: io::Result<()>,
}

impl Session<'_> {
    /// Explains one file until its end, or until nobody listens.
    fn file(&mut self, path: &Path) -> Result<(), String> {
        let source: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(path).map_err(|error| unopened(&error))?),
        };
        let name = path.to_string_lossy();
        if !self.json {
            self.write(&format_args!("{name}\n{HEADING}"));
        }
        let mut index = 0;
        let read = har::read(BufReader::with_capacity(BUFFER, source), |entry| {
            self.exchange(&name, index, &entry);
            index += 1;
            if self.written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if !self.json {
            self.write(&"");
        }
        read.map_err(|error| error.to_string())
    }

    fn exchange(&mut self, file: &str, index: usize, entry: &Entry) {
        let explanation = explain(entry);
        self.summary.add(&explanation);
        match self.json {
            true => self.write(&Line::new(file, index, &explanation)),
            false => self.write(&Row::new(index, &explanation)),
        }
    }

    fn summarize(&mut self) {
        let summary = self.summary.to_string();
        match self.json {
            true => drop(writeln!(io::stderr(), "{summary}")),
            false => self.write(&summary),
        }
    }

    fn write(&mut self, text: &dyn std::fmt::Display) {
        if self.written.is_ok() {
            self.written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        }
    }

    /// Whoever has closed the output, as `head` does, has read enough.
    fn ended(self) -> Result<Exit, String> {
        match self.written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(format!("cannot write: {error}"))
            }
            _ => Ok(Exit::Success),
        }
    }
}

fn unopened(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file; check the path".to_owned(),
        _ => format!("cannot be opened: {error}"),
    }
}

const BUFFER: usize = 64 * 1024;

pub(super) const ABOUT: &str = "\
Show what recorded traffic would have been charged, and what its answers said.

Reads HAR 1.2, as browsers and proxies (mitmproxy, Charles, Proxyman) export it, and tells for each \
exchange what tollgate would estimate and charge, what usage it read, what limits and remaining \
amounts it learned, the class of an error and the delay before another try; at the end, how far the \
estimates were off. Sends nothing. Shows no headers, no prompts and no queries of URLs.

Columns: charge, what the token limit is charged at admission (~: guessed from the size); in, out: \
the estimated prompt and output; used in, out, cached: what the response states. Where the provider \
charges usage in the end, charge is what is reserved until then.

Classes: transient, the same request may succeed soon; until_reset, once a long window has reset; \
terminal, it will fail again; in_band, an error inside a 200.";

const EXAMPLES: &str = "\
Examples:
  Explain what a browser or a proxy has recorded:
    tollgate explain traffic.har

  Count what was charged by model:
    tollgate explain --json *.har | jq -s 'group_by(.model)[] | [.[0].model, (map(.charge.tokens) | add)]'

  Read what another program writes:
    zcat traffic.har.gz | tollgate explain --json -

Exit codes:
  0    every file was read to its end
  2    wrong arguments, or a file that could not be read to its end; the others were";

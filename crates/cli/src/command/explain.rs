use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Exit;
use crate::explain::har::{self, Entry};
use crate::explain::{HEADING, JsonLine, Summary, TableRow, explain};
use crate::terminal::notify;

/// The arguments of `paceline explain`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ExplainArgs {
    /// HAR files, or files with one HAR entry per line; `-` reads standard input
    #[arg(value_name = "FILE.har", required = true)]
    pub files: Vec<PathBuf>,

    /// Print one line of JSON per exchange; the summary goes to standard error
    #[arg(long)]
    pub json: bool,
}

impl ExplainArgs {
    /// Explains every file to `out`, as far as it is readable.
    ///
    /// # Errors
    /// Returns an error of `out`. A closed pipe is not an error.
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, String> {
        let mut session =
            Session { json: self.json, out, summary: Summary::default(), written: Ok(()) };
        let mut failed_files = 0;
        for file in &self.files {
            if let Err(reason) = session.explain_file(file) {
                failed_files += 1;
                notify(&format_args!("{}: {reason}", file.display()));
            }
            if session.written.is_err() {
                return session.finish();
            }
        }
        session.summarize();
        match failed_files {
            0 => session.finish(),
            _ => session.finish().map(|_| Exit::Stopped),
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
    /// Explains one file, until its end or until the output is closed.
    fn explain_file(&mut self, path: &Path) -> Result<(), String> {
        let source: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(path).map_err(|error| open_error(&error))?),
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
        if !entry.is_exchange() {
            return self.summary.skip();
        }
        let explanation = explain(entry);
        self.summary.add(&explanation);
        match self.json {
            true => self.write(&JsonLine::new(file, index, &explanation)),
            false => self.write(&TableRow::new(index, &explanation)),
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

    /// Returns the exit code. A closed pipe, as by `head`, is not an error.
    fn finish(self) -> Result<Exit, String> {
        match self.written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(format!("standard output: cannot write: {error}"))
            }
            _ => Ok(Exit::Success),
        }
    }
}

fn open_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file; check the path".to_owned(),
        _ => format!("cannot open: {error}"),
    }
}

const BUFFER: usize = 64 * 1024;

pub(super) const ABOUT: &str = "\
Show what recorded traffic would have been charged.

Reads HAR 1.2 files as exported by browsers and proxies (mitmproxy, Charles, Proxyman). For each \
exchange it shows paceline's estimate and charge, the usage reported in the response, the limits \
and remaining amounts stated in the headers, the class of an error, and the delay before a retry; \
at the end, the error of the estimates. Sends nothing. Shows no headers, prompts or URL queries.

Columns: charge, the amount charged to the token limit at admission (~: guessed from the size); \
in, out: estimated input and output tokens; used in, out, cached: the usage reported in the \
response. For providers that charge the actual usage, charge is the reservation. CORS preflights \
and the images, scripts and styles of pages are skipped.

Classes: transient, a retry may succeed soon; until_reset, a retry may succeed after a long \
window resets; terminal, a retry would fail again; in_band, an error inside a 200 response.";

const EXAMPLES: &str = "\
Examples:
  Explain a recording from a browser or proxy:
    paceline explain traffic.har

  Sum up the charged tokens by model:
    paceline explain --json *.har | jq -s 'group_by(.model)[] | [.[0].model, (map(.charge.tokens) | add)]'

  Read from a pipe:
    zcat traffic.har.gz | paceline explain --json -

Exit codes:
  0    every file was read to its end
  2    wrong arguments, or a file that could not be read to its end (other files are still explained)";

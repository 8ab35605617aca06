use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// A parser for values that may contain a secret by mistake (an API key instead of a name, a
/// password in a URL). Unlike clap's own parsers, it does not quote the value in errors.
#[derive(Clone)]
pub(super) struct RedactedParser<T>(pub(super) fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for RedactedParser<T> {
    type Value = T;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let read = value.to_str().ok_or_else(|| "is not UTF-8".to_owned()).and_then(self.0);
        read.map_err(|reason| {
            let name = arg.map(ToString::to_string).unwrap_or_default();
            Error::raw(ErrorKind::ValueValidation, format!("{name}: {reason}\n")).with_cmd(cmd)
        })
    }
}

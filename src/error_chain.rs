use std::error::Error;
use std::fmt;
use std::iter::successors;

/// Formats an error and its causes on one line, separated by `: `.
///
/// Omits a cause if the text of the error before it already ends with it, since many errors include the
/// text of their source.
#[derive(Debug, Clone, Copy)]
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.0.to_string();
        f.write_str(&last)?;
        for cause in causes(self.0).skip(1) {
            let text = cause.to_string();
            if !last.ends_with(&text) {
                write!(f, ": {text}")?;
                last = text;
            }
        }
        Ok(())
    }
}

/// Returns the error itself and its causes, from the outermost to the root.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |error| (**error).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|layer| layer as _)
        }
    }

    #[test]
    fn error_chain_joins_causes() {
        let root = Layer("connection refused", None);
        let error = Layer("request failed", Some(Box::new(Layer("connect", Some(Box::new(root))))));
        assert_eq!(ErrorChain(&error).to_string(), "request failed: connect: connection refused");
        assert_eq!(causes(&error).count(), 3);
    }

    #[test]
    fn error_chain_skips_repeated_cause() {
        let root = Layer("connection refused", None);
        let error = Layer("can't connect: connection refused", Some(Box::new(root)));
        assert_eq!(ErrorChain(&error).to_string(), "can't connect: connection refused");
    }
}

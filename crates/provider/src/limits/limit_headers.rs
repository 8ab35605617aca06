use http::HeaderMap;
use paceline_limiter::limiter::{LimitReading, LimitReadings};
use smallvec::SmallVec;

use super::limit_header::LimitHeader;
use super::limit_window::Level;
use super::reset_format::{Context, ResetFormat};
use super::texts::Texts;

/// The response headers in which a provider states its limits.
///
/// A header is called `<prefix><part>-<name>` or `<prefix><name>-<part>`, where the part is `limit`,
/// `remaining`, `reset` or `renewalperiod`: `x-ratelimit-remaining-tokens`.
///
/// ```
/// use paceline_provider::{LimitHeader, LimitHeaders, LimitWindow, Profile, Rules};
///
/// const LIMITS: LimitHeaders = LimitHeaders::new(
///     &["x-acme-"],
///     &[
///         LimitHeader::new("calls", "requests", LimitWindow::Seconds(60)),
///         LimitHeader::new("units", "tokens", LimitWindow::Seconds(3_600)).rounded_to(100),
///     ],
/// );
/// let acme = Profile::custom(Rules::new("acme").limits(LIMITS))?;
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("x-acme-limit-units", "5000".parse()?);
/// headers.insert("x-acme-remaining-units", "4200".parse()?);
/// let reading = &acme.limits(&headers)[0];
/// assert_eq!((reading.limit, reading.remaining), (Some(5_000), Some(4_200)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitHeaders {
    prefixes: &'static [&'static str],
    limits: &'static [LimitHeader],
    /// Limits that many providers have in common.
    common: &'static [LimitHeader],
    reset: ResetFormat,
    can_be_overdrawn: bool,
}

impl LimitHeaders {
    /// Returns headers with these prefixes, in lower case, for these limits.
    pub const fn new(prefixes: &'static [&'static str], limits: &'static [LimitHeader]) -> Self {
        Self { prefixes, limits, common: &[], reset: ResetFormat::Any, can_be_overdrawn: false }
    }

    /// Adds limits whose name states their window: `requests-day`, `tokens-minute`, `req-10-second`.
    #[must_use]
    pub const fn with_windows_in_names(self) -> Self {
        Self { common: LimitHeader::WITH_WINDOW_IN_NAME, ..self }
    }

    /// Sets the format of resets. Default: [`ResetFormat::Any`].
    #[must_use]
    pub const fn reset(self, format: ResetFormat) -> Self {
        Self { reset: format, ..self }
    }

    /// Reads a negative remainder below -1 as zero. Default: as unknown.
    #[must_use]
    pub const fn overdrawn(self) -> Self {
        Self { can_be_overdrawn: true, ..self }
    }

    /// Returns the prefixes of all headers.
    pub(crate) const fn prefixes(&self) -> &'static [&'static str] {
        self.prefixes
    }

    /// Returns the limits that the headers state, in the order of the table.
    pub(crate) fn read(&self, headers: &HeaderMap) -> LimitReadings {
        let mut found: SmallVec<[(usize, Texts<'_>); 4]> = SmallVec::new();
        for (name, value) in headers {
            let Some((limit, part)) = self.find(name.as_str()) else { continue };
            let at = found.iter().position(|(other, _)| *other == limit).unwrap_or(found.len());
            if at == found.len() {
                found.push((limit, Texts::default()));
            }
            if let Some(text) = found[at].1.of(part) {
                text.put(value);
            }
        }
        let texts = |limit: usize| found.iter().find(|(other, _)| *other == limit).map(|(_, t)| t);
        let limits = self.limits().enumerate();
        let stated = limits.filter_map(|(index, limit)| Some((limit, texts(index)?)));
        stated.filter_map(|(limit, texts)| self.reading(limit, texts, headers)).collect()
    }

    fn limits(&self) -> impl Iterator<Item = &'static LimitHeader> {
        self.limits.iter().chain(self.common)
    }

    /// Returns the index of the limit that a header belongs to, and the part of the limit that the
    /// header states.
    fn find<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let rest = self.prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        let (part, name) = match rest.split_once('-') {
            Some((part, name)) if Texts::is_part(part) => (part, name),
            Some(_) => rest.rsplit_once('-').map(|(name, part)| (part, name))?,
            None => (rest, ""),
        };
        let limit = self.limits().position(|limit| limit.name == name)?;
        Texts::is_part(part).then_some((limit, part))
    }

    fn reading(
        &self,
        limit: &LimitHeader,
        texts: &Texts<'_>,
        headers: &HeaderMap,
    ) -> Option<LimitReading> {
        let level = self.level(texts);
        if level.limit.is_none() && level.remaining.is_none() {
            return None;
        }
        let window = limit.window.stated(texts);
        let context = Context { level, window, headers };
        let reset = texts.reset.get().and_then(|text| self.reset.read(text, &context));
        let window = window.unwrap_or_else(|| limit.window.computed(level, reset));
        let mut reading = LimitReading::new(limit.dimension(), window);
        (reading.limit, reading.remaining) = (level.limit, level.remaining);
        (reading.reset, reading.granularity) = (reset, limit.granularity);
        Some(reading)
    }

    fn level(&self, texts: &Texts<'_>) -> Level {
        // Providers write an unknown limit as zero; a remainder of zero is then unknown too.
        let limit = texts.limit.number().and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
        let remaining = match (texts.remaining.number(), limit) {
            (Some(left), Some(_)) if left < -1 && self.can_be_overdrawn => Some(0),
            (left, Some(limit)) => unsigned(left).filter(|left| *left <= limit),
            (left, None) => unsigned(left).filter(|left| *left > 0),
        };
        Level { limit, remaining }
    }
}

fn unsigned(number: Option<i64>) -> Option<u64> {
    number.and_then(|number| u64::try_from(number).ok())
}

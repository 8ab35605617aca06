//! The words of codes and messages, in which refusals are recognised.

/// The words of texts in lower case, by sentences. Codes are texts too: `insufficient_quota` and
/// `InsufficientQuota` both have the words `insufficient quota`.
///
/// URLs are left out, except for the section of a page, since they name topics (`/billing`). `/` and `>` are the words `per` and `exceeds`.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Sentences with a space before and after each word, ended by line feeds.
    text: String,
}

impl Words {
    /// Adds the words of a text.
    pub(super) fn add(&mut self, text: &str) {
        for line in text.lines() {
            self.begin_sentence();
            for token in line.split_whitespace() {
                if is_url(token) {
                    self.add_token(token.split_once('#').map_or("", |(_, section)| section));
                    continue;
                }
                self.add_token(token);
                if token.ends_with(['.', '!', '?', ';']) {
                    self.begin_sentence();
                }
            }
        }
        self.begin_sentence();
    }

    /// Returns the words of a text without names that it quotes from the request: `'list_overdue'`,
    /// `thinking.budget_tokens`, `my-overdue-2`, 'check the balance'.
    pub(super) fn without_names(texts: &[String]) -> Self {
        let mut words = Self::default();
        for line in texts.iter().flat_map(|text| text.lines()) {
            let mut tokens = line.split_whitespace();
            let (mut kept, mut before) = (Vec::new(), "");
            while let Some(token) = tokens.next() {
                // What an error says isn't a name.
                let is_value = ["message':", "message\":"].iter().any(|end| before.ends_with(end));
                before = token;
                let quoted = quoted_length(token, tokens.clone());
                if is_value || quoted == 0 && !is_name(token) {
                    kept.push(token);
                } else {
                    (1..quoted).for_each(|_| _ = tokens.next());
                }
            }
            words.add(&kept.join(" "));
        }
        words
    }

    fn begin_sentence(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n ") {
            self.end_word();
            self.text.push('\n');
        }
        self.end_word();
    }

    fn end_word(&mut self) {
        if !self.text.ends_with(' ') {
            self.text.push(' ');
        }
    }

    fn add_token(&mut self, token: &str) {
        let chars: Vec<char> = token.chars().collect();
        for (at, &c) in chars.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| chars[at]);
            let after = chars.get(at + 1).copied();
            let is_in_number = || {
                before.is_some_and(|c| c.is_ascii_digit())
                    && after.is_some_and(|c| c.is_ascii_digit())
            };
            match c {
                '\'' | '\u{2019}' => {}
                ',' if is_in_number() => {}
                '.' if is_in_number() => self.text.push('.'),
                '/' => self.add_word("per"),
                '>' => self.add_word("exceeds"),
                _ if !c.is_alphanumeric() => self.end_word(),
                _ => {
                    if begins_word(before, c, after) {
                        self.end_word();
                    }
                    self.text.extend(c.to_lowercase());
                }
            }
        }
        self.end_word();
    }

    fn add_word(&mut self, word: &str) {
        self.end_word();
        self.text.push_str(word);
        self.end_word();
    }

    /// Returns true if a sentence matches one of the rules.
    ///
    /// A rule is a list of alternatives, joined by `&`, each of which a sentence must have one of: words, joined by
    /// `|`. A last word that ends in `*` may go on: `insufficient|out of & credit*`.
    pub(super) fn has(&self, rules: &[&str]) -> bool {
        self.text.split('\n').any(|sentence| matches(sentence, rules))
    }

    /// Returns the words of the sentences that don't match one of the rules.
    pub(super) fn except(&self, rules: &[&str]) -> Self {
        let others = self.text.split('\n').filter(|sentence| !matches(sentence, rules));
        Self { text: others.collect::<Vec<_>>().join("\n") }
    }

    /// Returns the words in order, and an empty one at the end of each sentence.
    pub(super) fn list(&self) -> Vec<&str> {
        self.first(&[])
    }

    /// Returns the words in order, those of the sentences that match one of the rules first.
    pub(super) fn first(&self, rules: &[&str]) -> Vec<&str> {
        let sentences = self.text.split('\n');
        let (first, others): (Vec<_>, Vec<_>) =
            sentences.partition(|sentence| matches(sentence, rules));
        let sentences = first.into_iter().chain(others);
        sentences.flat_map(|sentence| sentence.split_whitespace().chain([""])).collect()
    }

    /// Returns true if these words are the only ones.
    pub(super) fn is(&self, words: &str) -> bool {
        self.text.trim() == words
    }
}

/// Returns the number of tokens of a short quotation that begins with this one; 0 if none does.
fn quoted_length<'t>(first: &'t str, others: impl Iterator<Item = &'t str>) -> usize {
    let is_around =
        |c: char| matches!(c, '.' | ',' | ':' | ';' | '(' | ')' | '[' | ']' | '{' | '}');
    let is_quote = |c: char| matches!(c, '\'' | '"' | '`' | '\u{2018}' | '\u{2019}');
    let ends = |token: &str| token.trim_end_matches(is_around).ends_with(is_quote);
    let begin = first.trim_start_matches(is_around);
    if !begin.starts_with(is_quote) {
        return 0;
    }
    let is_whole = begin.trim_end_matches(is_around).len() > 1 && ends(begin);
    let tokens = std::iter::once(first).chain(others).take(LONGEST_QUOTATION);
    match is_whole {
        true => 1,
        false => tokens.skip(1).position(ends).map_or(0, |at| at + 2),
    }
}

/// Returns true for the name of a member or of a model.
fn is_name(token: &str) -> bool {
    let token = token.trim_matches(|c: char| matches!(c, '.' | ',' | ':' | ';' | '(' | ')'));
    let has_digit = || token.contains(|c: char| c.is_ascii_digit());
    let begins_low = |part: &str| part.starts_with(|c: char| c.is_ascii_lowercase());
    let is_path = || token.contains('.') && token.split('.').all(begins_low);
    token.contains(['_', '[']) || is_path() || token.contains('-') && has_digit()
}

/// Returns true if a sentence has one of the alternatives of each part of a rule.
fn matches(sentence: &str, rules: &[&str]) -> bool {
    let has = |part: &str| part.split('|').any(|words| contains(sentence, words.trim()));
    rules.iter().any(|rule| rule.split('&').all(has))
}

/// Returns true if these words are in a sentence. Chinese has no spaces between words.
fn contains(sentence: &str, words: &str) -> bool {
    if !words.is_ascii() {
        return sentence.contains(words);
    }
    let (words, is_open) = match words.strip_suffix('*') {
        Some(start) => (start, true),
        None => (words, false),
    };
    sentence.match_indices(words).any(|(at, _)| {
        let rest = &sentence[at + words.len()..];
        sentence[..at].ends_with(' ') && (is_open || rest.starts_with(' '))
    })
}

/// Returns true for the first letter of a word: `F` in `FreeTier` and the second `L` in `TPMLimit`.
fn begins_word(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    c.is_uppercase()
        && (before.is_lowercase()
            || (before.is_uppercase() && after.is_some_and(char::is_lowercase)))
}

/// The most words of a quotation that is a name.
const LONGEST_QUOTATION: usize = 5;

fn is_url(token: &str) -> bool {
    let token = token.trim_start_matches(|c: char| !c.is_alphanumeric());
    ["http://", "https://", "www."].iter().any(|start| token.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut words = Words::default();
        words.add(text);
        words.text
    }

    #[test]
    fn codes_and_messages_are_split_into_words() {
        for (text, expected) in [
            ("insufficient_quota", " insufficient quota \n "),
            ("ModelAccountTpmRateLimitExceeded", " model account tpm rate limit exceeded \n "),
            ("TPMLimit", " tpm limit \n "),
            ("free-models-per-day. Add 10", " free models per day \n add 10 \n "),
            ("Limit: 40,000/min, used 1.5s", " limit 40000 per min used 1.5s \n "),
            ("You've a bill: https://a.b/billing", " youve a bill \n "),
            ("a\n\nb", " a \n b \n "),
        ] {
            assert_eq!(words(text), expected);
        }
    }

    #[test]
    fn names_of_the_request_are_left_out() {
        for (text, expected) in [
            (
                "Invalid schema for function 'check_balance': no",
                " invalid schema for function no \n ",
            ),
            ("`thinking.budget_tokens` is over a.b_c, tools[0].x", " is over \n "),
            ("model: gpt-overdue-3 (got 'top up credit balance')", " model got \n "),
            ("Don't exceed 'the credit", " dont exceed the credit \n "),
        ] {
            assert_eq!(Words::without_names(&[text.to_owned()]).text, expected);
        }
    }

    #[test]
    fn rule_needs_all_its_parts_in_one_sentence() {
        let mut text = Words::default();
        text.add("You are out of credits. The limit of today stays.");
        assert!(text.has(&["insufficient|out of & credit*"]));
        assert!(!text.has(&["insufficient|out of & credit", "out of & limit"]));
        assert!(!text.has(&["credi", "redits"]));
    }
}

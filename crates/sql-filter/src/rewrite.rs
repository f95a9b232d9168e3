//! Rewriting of statements, by a regular expression or by their canonical form.

use crate::filter::{Action, Call, Filter, Verdict};
use crate::settings::{RewritePattern, RewriteSettings};
use crate::statement::{Statement, parameters};
use crate::template::Template;
use pcre2::bytes::{Captures, Regex, RegexBuilder};
use sql_classify::Lexis;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A rule of rewriting.
#[derive(Debug)]
pub struct Rewrite {
    name: String,
    pattern: Pattern,
    replacement: Template,
    /// The log says once that a statement cannot be rewritten.
    has_failed: AtomicBool,
}

#[derive(Debug)]
enum Pattern {
    Regex(Regex),
    /// A canonical form.
    Form(String),
}

/// Compiles a regular expression for statements, which ignores case. Fails with PCRE2's message.
pub fn regex(text: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new();
    builder.caseless(true).dotall(true).utf(true).build(text).map_err(|error| error.to_string())
}

impl Rewrite {
    /// Fails with a sentence about a pattern or a replacement that is malformed.
    pub fn new(name: String, settings: &RewriteSettings) -> Result<Rewrite, String> {
        let replacement = Template::parse(&settings.replacement)?;
        let pattern = match &settings.pattern {
            RewritePattern::Regex(text) => {
                let regex = regex(text)?;
                let groups = regex.captures_len();
                if let Some(number) = replacement.numbers().find(|&number| number >= groups) {
                    return Err(format!("the replacement has ${number}, and the pattern has no such group"));
                }
                Pattern::Regex(regex)
            }
            RewritePattern::Statement(text) => {
                let statement = Statement::classify(text, Lexis::default(), true);
                let form = statement.form().ok_or("the statement cannot be read")?;
                if replacement.numbers().any(|number| number == 0) {
                    return Err("the literals of a statement are $1, $2 and so on; there is no $0".to_owned());
                }
                Pattern::Form(form.to_owned())
            }
        };
        Ok(Rewrite { name, pattern, replacement, has_failed: AtomicBool::new(false) })
    }

    /// Returns the new text of a statement; `None`: it stays as it is.
    fn rewrite(&self, statement: &Statement) -> Option<String> {
        let text = statement.text()?;
        match &self.pattern {
            Pattern::Regex(regex) => self.replace_matches(regex, text),
            Pattern::Form(form) => {
                if statement.form()? != form {
                    return None;
                }
                let literals = statement.literals()?;
                self.replacement.expand(|number| literals.get(number.checked_sub(1)?).cloned())
            }
        }
    }

    fn replace_matches(&self, regex: &Regex, text: &str) -> Option<String> {
        let (mut out, mut end) = (String::new(), 0);
        // A text on which PCRE2 gives up stays as it is.
        for captures in regex.captures_iter(text.as_bytes()) {
            let captures: Captures<'_> = captures.ok()?;
            let whole = captures.get(0)?;
            let group = |number| {
                let found = captures.get(number).map_or(Some(""), |found| text.get(found.start()..found.end()));
                found.map(str::to_owned)
            };
            out.push_str(text.get(end..whole.start())?);
            out.push_str(&self.replacement.expand(group)?);
            end = whole.end();
        }
        (end > 0 || !out.is_empty()).then(|| out + text.get(end..).unwrap_or_default())
    }
}

impl Filter for Rewrite {
    fn check(&self, call: &Call<'_>) -> Verdict {
        if call.action == Action::Execute {
            return Verdict::Pass;
        }
        let Some(text) = self.rewrite(call.statement).filter(|text| Some(text.as_str()) != call.statement.text())
        else {
            return Verdict::Pass;
        };
        // The client sends a value for each parameter, in their order.
        let lexis = call.statement.lexis();
        let before = call.statement.text().and_then(|text| parameters(text, lexis));
        let keeps_parameters = match &self.pattern {
            Pattern::Regex(_) => parameters(&text, lexis) == before,
            Pattern::Form(_) => parameters(&text, lexis) == before && self.keeps_order(call.statement),
        };
        if call.action == Action::Prepare && !keeps_parameters {
            if !self.has_failed.swap(true, Relaxed) {
                tracing::warn!(filter = self.name, "a statement stays as it is: its parameters would be others");
            }
            return Verdict::Pass;
        }
        call.counters.rewritten.increment();
        Verdict::Replace(text)
    }
}

impl Rewrite {
    /// Returns whether the parameters of a statement are in the same order in the replacement.
    fn keeps_order(&self, statement: &Statement) -> bool {
        let literals = statement.literals().unwrap_or_default();
        let is_parameter = |number: &usize| literals.get(number.wrapping_sub(1)).is_some_and(|it| it == "?");
        let used: Vec<usize> = self.replacement.numbers().filter(is_parameter).collect();
        used.is_sorted_by(|a, b| a < b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::filter::Client;
    use std::sync::Arc;

    fn rewritten(pattern: RewritePattern, replacement: &str, sql: &str, action: Action) -> Option<String> {
        let settings = RewriteSettings { pattern, replacement: replacement.into() };
        let rewrite = Rewrite::new("r".into(), &settings).unwrap();
        let statement = Statement::classify(sql, Lexis::default(), action == Action::Prepare);
        let (client, counters) = (Client::default(), Arc::new(Counters::default()));
        let call = Call { statement: &statement, action, client: &client, service: "", counters: &counters };
        match rewrite.check(&call) {
            Verdict::Replace(text) => Some(text),
            _ => None,
        }
    }

    fn by_regex(pattern: &str, replacement: &str, sql: &str) -> Option<String> {
        rewritten(RewritePattern::Regex(pattern.into()), replacement, sql, Action::Query)
    }

    fn by_form(form: &str, replacement: &str, sql: &str, action: Action) -> Option<String> {
        rewritten(RewritePattern::Statement(form.into()), replacement, sql, action)
    }

    #[test]
    fn matches_are_replaced() {
        for (pattern, replacement, sql, expected) in [
            (r"\bold\b", "new", "SELECT a FROM Old, old", Some("SELECT a FROM new, new")),
            (r"limit (\d+)", "LIMIT ${1}0", "SELECT 1 LIMIT 5", Some("SELECT 1 LIMIT 50")),
            (r"^select (.*)$", "SELECT /* $$1 é */ $1", "SELECT 'é'", Some("SELECT /* $1 é */ 'é'")),
            (r"(x)?y", "<$1>", "y xy", Some("<> <x>")),
            ("nothing", "x", "SELECT 1", None),
            ("1", "1", "SELECT 1", None),
        ] {
            assert_eq!(by_regex(pattern, replacement, sql).as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn statements_of_a_form_are_replaced() {
        let form = "select a from t where b = ? and c = ?";
        let to = "SELECT a FROM u WHERE c = $2 AND b = $1";
        let query = |sql| by_form(form, to, sql, Action::Query);
        assert_eq!(
            query("SELECT a FROM t WHERE b=-1 AND c = 'it''s'").as_deref(),
            Some("SELECT a FROM u WHERE c = 'it''s' AND b = -1")
        );
        assert_eq!(query("SELECT a FROM t WHERE b = 1"), None);
        let prepare = |to, sql| by_form(form, to, sql, Action::Prepare);
        assert_eq!(prepare(to, "SELECT a FROM t WHERE b = ? AND c = ?"), None, "the order changes");
        assert_eq!(
            prepare(to, "SELECT a FROM t WHERE b = 1 AND c = ?").as_deref(),
            Some("SELECT a FROM u WHERE c = ? AND b = 1")
        );
        let same = "SELECT a FROM u WHERE b = $1 AND c = $2";
        assert_eq!(
            prepare(same, "SELECT a FROM t WHERE b = ? AND c = ?").as_deref(),
            Some("SELECT a FROM u WHERE b = ? AND c = ?")
        );
        assert_eq!(prepare("SELECT $1", "SELECT a FROM t WHERE b = ? AND c = ?"), None, "one is missing");
    }

    #[test]
    fn malformed_rules() {
        let refused = |pattern, replacement: &str| {
            Rewrite::new("r".into(), &RewriteSettings { pattern, replacement: replacement.into() }).unwrap_err()
        };
        assert!(refused(RewritePattern::Regex("(a)".into()), "$2").contains("no such group"));
        assert!(!refused(RewritePattern::Regex("(".into()), "").is_empty());
        assert!(refused(RewritePattern::Regex("a".into()), "$x").contains('$'));
        assert!(refused(RewritePattern::Statement("SELECT 'a".into()), "").contains("read"));
        assert!(refused(RewritePattern::Statement("SELECT 1".into()), "$0").contains("$0"));
    }
}

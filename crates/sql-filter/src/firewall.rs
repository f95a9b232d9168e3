//! A firewall: refuses statements that a rule denies, and those that are not on its allow list.

use crate::allow_list::{AllowList, Learned};
use crate::filter::{Call, Filter, Verdict};
use crate::settings::{FirewallSettings, Mode};
use crate::statement::{Dynamic, Statement};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// A firewall.
#[derive(Debug)]
pub struct Firewall {
    name: String,
    settings: FirewallSettings,
    allow_list: Option<AllowList>,
    /// The log says once that the allow list is full.
    is_full: AtomicBool,
}

impl Firewall {
    pub fn open(name: String, settings: FirewallSettings) -> io::Result<Firewall> {
        let learns = settings.mode == Mode::Learn;
        let allow_list = match &settings.allow_list {
            Some(path) => Some(AllowList::open(path, settings.statements_max, learns)?),
            None => None,
        };
        Ok(Firewall { name, settings, allow_list, is_full: AtomicBool::new(false) })
    }

    /// Returns why a statement is refused.
    fn denial(&self, call: &Call<'_>) -> Option<String> {
        let minute = (now_seconds() / 60 % (24 * 60)) as u16;
        if let Some(rule) = self.settings.deny.iter().find(|rule| rule.matches(call, minute)) {
            return Some(format!("the rule \"{rule}\" denies it"));
        }
        self.unlisted(call.statement)
    }

    /// Returns why the allow list does not allow a statement. One that learns allows it.
    fn unlisted(&self, statement: &Statement) -> Option<String> {
        let list = self.allow_list.as_ref()?;
        if self.settings.mode == Mode::Learn {
            if let Some(form) = statement.form()
                && list.learn(form) == Learned::NoRoom
                && !self.is_full.swap(true, Relaxed)
            {
                tracing::warn!(filter = self.name, "some statements do not fit into the allow list");
            }
            return None;
        }
        let Some(form) = statement.form() else {
            return Some("it is too long to be checked, or cannot be read as MariaDB reads it".to_owned());
        };
        (!list.allows(form)).then(|| format!("it is not on the allow list: {}", shortened(form)))
    }

    /// As [`Firewall::denial`], also for the text that the statement executes.
    fn denial_of_all(&self, call: &Call<'_>) -> Option<String> {
        if let Some(denial) = self.denial(call) {
            return Some(denial);
        }
        match call.statement.dynamic() {
            Dynamic::None => None,
            Dynamic::Text(text) => {
                let inner = Statement::classify(&text, call.statement.lexis(), true);
                match inner.dynamic() {
                    Dynamic::None => self.denial(&Call { statement: &inner, ..*call }),
                    _ => Some("it prepares a statement that prepares another".to_owned()),
                }
            }
            // Rules about users and times were checked already.
            Dynamic::Unknown if self.needs_text() => Some("it executes a text that is not known before".to_owned()),
            Dynamic::Unknown => None,
        }
    }

    fn needs_text(&self) -> bool {
        let lists = self.allow_list.is_some() && self.settings.mode != Mode::Learn;
        lists || self.settings.deny.iter().any(|rule| rule.is_about_tables())
    }
}

impl Filter for Firewall {
    fn check(&self, call: &Call<'_>) -> Verdict {
        if self.settings.exempt_users.contains(&call.client.user) {
            return Verdict::Pass;
        }
        let Some(reason) = self.denial_of_all(call) else { return Verdict::Pass };
        if self.settings.mode == Mode::Report {
            call.counters.reported.increment();
            tracing::warn!(filter = self.name, user = call.client.user, "a statement would be refused: {reason}");
            return Verdict::Pass;
        }
        call.counters.blocked.increment();
        Verdict::Refuse(call.client.denied(&self.name, &reason))
    }

    fn reopen(&self) {
        self.is_full.store(false, Relaxed);
        if let Some(list) = &self.allow_list {
            list.reopen();
        }
    }
}

/// Returns the beginning of a form, for messages.
fn shortened(form: &str) -> String {
    const LETTERS_MAX: usize = 200;
    match form.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{} …", form.get(..end).unwrap_or_default()),
        None => form.to_owned(),
    }
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::deny_rule::DenyRule;
    use crate::filter::{Action, Client};
    use sql_classify::Lexis;
    use std::sync::Arc;

    fn check(firewall: &Firewall, user: &str, sql: &str) -> (Verdict, Arc<Counters>) {
        let statement = Statement::classify(sql, Lexis::default(), false);
        let client = Client { user: user.into(), host: "h".into(), ..Client::default() };
        let counters = Arc::new(Counters::default());
        let verdict = firewall.check(&Call {
            statement: &statement,
            action: Action::Query,
            client: &client,
            service: "app",
            counters: &counters,
        });
        (verdict, counters)
    }

    fn passes(firewall: &Firewall, sql: &str) -> bool {
        check(firewall, "joe", sql).0 == Verdict::Pass
    }

    #[test]
    fn learned_statements_are_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app");
        let settings = |mode| FirewallSettings {
            mode,
            allow_list: Some(path.clone()),
            statements_max: 10,
            ..FirewallSettings::default()
        };
        let firewall = Firewall::open("guard".into(), settings(Mode::Learn)).unwrap();
        for sql in ["SELECT a FROM t WHERE b = 1", "PREPARE s FROM 'SELECT 1'"] {
            assert!(passes(&firewall, sql));
        }
        drop(firewall);
        let firewall = Firewall::open("guard".into(), settings(Mode::Enforce)).unwrap();
        for sql in ["select a from t where b = 'x'", "PREPARE s FROM 'SELECT 2'"] {
            assert!(passes(&firewall, sql), "{sql}");
        }
        for sql in [
            "SELECT a FROM t WHERE b = 1 OR 1 = 1",
            "SELECT a FROM t; DROP TABLE t",
            "PREPARE s FROM 'DROP TABLE t'",
            "PREPARE s FROM @x",
            "SELECT 'a",
            "",
        ] {
            assert!(!passes(&firewall, sql), "{sql}");
        }
        let (verdict, counters) = check(&firewall, "joe", "DROP TABLE t");
        let Verdict::Refuse(refusal) = verdict else { panic!("{verdict:?}") };
        assert_eq!((refusal.code, counters.blocked.get()), (1141, 1));
        assert!(refusal.message.contains("'joe'@'h' by the filter guard: it is not on the allow list: DROP TABLE t"));
    }

    #[test]
    fn rules_deny() {
        let settings = FirewallSettings {
            deny: vec![DenyRule::parse("table d.secret").unwrap()],
            exempt_users: vec!["ann".into()],
            ..FirewallSettings::default()
        };
        let firewall = Firewall::open("guard".into(), settings.clone()).unwrap();
        for sql in ["SELECT * FROM d.secret", "PREPARE s FROM 'DELETE FROM secret'", "EXECUTE IMMEDIATE @x"] {
            assert!(!passes(&firewall, sql), "{sql}");
            assert_eq!(check(&firewall, "ann", sql).0, Verdict::Pass, "{sql}");
        }
        assert!(passes(&firewall, "SELECT 1") && passes(&firewall, "EXECUTE s"));
        let reporting = Firewall::open("guard".into(), FirewallSettings { mode: Mode::Report, ..settings }).unwrap();
        let (verdict, counters) = check(&reporting, "joe", "SELECT * FROM d.secret");
        assert_eq!((verdict, counters.reported.get(), counters.blocked.get()), (Verdict::Pass, 1, 0));
    }
}

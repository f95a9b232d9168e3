//! The filter of events.

use crate::event::{Event, Name, kind};

/// The settings of the filter. An empty list of `only` admits everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Kinds of events.
    pub only: Vec<String>,
    pub except: Vec<String>,
    /// Users as `database.name`. Events of connections without a login have no user.
    pub only_users: Vec<String>,
    pub except_users: Vec<String>,
}

impl Filter {
    /// Returns whether events of a kind may be written. Events about the log itself always are.
    pub fn admits_kind(&self, name: &str) -> bool {
        !kind::FILTERED.contains(&name)
            || (self.only.is_empty() || self.only.iter().any(|only| only == name))
                && !self.except.iter().any(|except| except == name)
    }

    /// Returns whether an event is written. An attempt to log in counts for the user that it names.
    pub fn admits(&self, event: &Event) -> bool {
        if !kind::FILTERED.contains(&event.kind) {
            return true;
        }
        let named = attempted_user(event);
        let is_of = |listed: &String| event.subject.users.iter().chain(&named).any(|user| is_same(listed, user));
        self.admits_kind(event.kind)
            && (self.only_users.is_empty() || self.only_users.iter().any(is_of))
            && !self.except_users.iter().any(is_of)
    }
}

fn attempted_user(event: &Event) -> Option<Name> {
    let param = event.param.as_doc();
    let text = |key| param.get(key).and_then(|value| value.as_str().map(str::to_owned));
    (event.kind == kind::AUTHENTICATE).then(|| Some(Name { name: text("user")?, db: text("db")? })).flatten()
}

fn is_same(listed: &str, user: &Name) -> bool {
    listed.split_once('.').is_some_and(|(db, name)| user.db == db && user.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Subject;
    use document::doc;

    fn of(kind: &'static str, users: &[&str]) -> Event {
        let name = |user: &&str| Name { name: (*user).to_owned(), db: "admin".to_owned() };
        let subject = Subject { users: users.iter().map(name).collect(), ..Subject::system([0; 16]) };
        Event { kind, ts_ms: 0, subject, param: doc! { "user": "eve", "db": "admin" }, result: 0 }
    }

    #[test]
    fn kinds_and_users_are_filtered() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let filter = Filter { only: list(&["dropUser"]), ..Filter::default() };
        assert!(filter.admits(&of(kind::DROP_USER, &[])) && !filter.admits(&of(kind::LOGOUT, &["joe"])));
        assert!(filter.admits(&of(kind::STARTUP, &[])));
        let filter = Filter { except: list(&["logout"]), except_users: list(&["admin.joe"]), ..Filter::default() };
        assert!(filter.admits(&of(kind::DROP_USER, &["ann"])) && !filter.admits(&of(kind::DROP_USER, &["joe"])));
        assert!(!filter.admits(&of(kind::LOGOUT, &["ann"])));
        let filter = Filter { only_users: list(&["admin.eve"]), ..Filter::default() };
        assert!(filter.admits(&of(kind::AUTHENTICATE, &[])) && !filter.admits(&of(kind::DROP_USER, &[])));
    }
}

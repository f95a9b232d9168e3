//! Limits of result sets, and of the rate of statements.

use crate::counters::Counters;
use crate::filter::{Action, Call, Filter, Verdict};
use crate::refusal::Refusal;
use crate::result_set::{Column, ResultEditor, Row};
use crate::settings::LimitsSettings;
use ahash::AHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait of a statement.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// So many users have their own rate. Beyond that, idle users are forgotten.
const USERS_MAX: usize = 10_000;

/// ER_USER_LIMIT_REACHED
const LIMIT_REACHED: (u16, &str) = (1226, "42000");

/// The limits.
#[derive(Debug)]
pub struct Limits {
    name: String,
    settings: LimitsSettings,
    /// The time up to which each user has used the rate.
    users: Mutex<AHashMap<String, Instant>>,
}

impl Limits {
    pub fn new(name: String, settings: LimitsSettings) -> Limits {
        Limits { name, settings, users: Mutex::default() }
    }

    /// Returns how long a user's next statement has to wait. Fails if it may not be executed.
    fn take(&self, user: &str, per_second: u32, now: Instant) -> Result<Duration, Refusal> {
        let each = Duration::from_secs(1) / per_second.max(1);
        // A second's statements may come at once.
        let window = Duration::from_secs(1).saturating_sub(each);
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= USERS_MAX && !users.contains_key(user) {
            users.retain(|_, used_until| *used_until > now);
        }
        let used_until = users.entry(user.to_owned()).or_insert(now);
        let begins = (*used_until).max(now);
        let wait = (begins - now).saturating_sub(window);
        let wait_max = if self.settings.waits { WAIT_MAX } else { Duration::ZERO };
        if wait > wait_max {
            let what = format!("User '{user}' has exceeded the 'statements-per-second' resource");
            return Err(self.reached(&format!("{what} (current value: {per_second})")));
        }
        *used_until = begins + each;
        Ok(wait)
    }

    fn reached(&self, what: &str) -> Refusal {
        let message = format!("{what} of the filter {}", self.name);
        Refusal { code: LIMIT_REACHED.0, state: LIMIT_REACHED.1, message }
    }
}

impl Filter for Limits {
    fn check(&self, call: &Call<'_>) -> Verdict {
        let Some(per_second) = self.settings.statements_per_second else { return Verdict::Pass };
        let is_exempt = self.settings.exempt_users.contains(&call.client.user);
        if is_exempt || call.action == Action::Prepare {
            return Verdict::Pass;
        }
        match self.take(&call.client.user, per_second, Instant::now()) {
            Ok(wait) if wait.is_zero() => Verdict::Pass,
            Ok(wait) => {
                call.counters.delayed.increment();
                Verdict::Wait(wait)
            }
            Err(refusal) => {
                call.counters.blocked.increment();
                Verdict::Refuse(refusal)
            }
        }
    }

    fn results(&self, call: &Call<'_>) -> Option<Box<dyn ResultEditor>> {
        let LimitsSettings { rows_max, bytes_max, exempt_users, empties, .. } = &self.settings;
        if rows_max.is_none() && bytes_max.is_none() || exempt_users.contains(&call.client.user) {
            return None;
        }
        let reached = |setting: &str, value: Option<u64>| {
            self.reached(&format!("The result set exceeds '{setting}' (current value: {})", value.unwrap_or_default()))
        };
        Some(Box::new(LimitedRows {
            rows_left: *rows_max,
            bytes_left: *bytes_max,
            too_many: reached("max-rows", *rows_max),
            too_large: reached("max-bytes", *bytes_max),
            limits: (*rows_max, *bytes_max),
            empties: *empties,
            counters: call.counters.clone(),
        }))
    }
}

/// Ends or empties a result set that exceeds its limits.
#[derive(Debug)]
struct LimitedRows {
    rows_left: Option<u64>,
    bytes_left: Option<u64>,
    too_many: Refusal,
    too_large: Refusal,
    limits: (Option<u64>, Option<u64>),
    empties: bool,
    counters: Arc<Counters>,
}

impl ResultEditor for LimitedRows {
    fn columns(&mut self, _columns: &[Column]) {
        (self.rows_left, self.bytes_left) = self.limits;
    }

    fn row(&mut self, row: &mut Vec<u8>, _is_binary: bool) -> Row {
        let refusal = match (self.rows_left, self.bytes_left) {
            (Some(0), _) => &self.too_many,
            (_, Some(left)) if (row.len() as u64) > left => &self.too_large,
            (rows, bytes) => {
                self.rows_left = rows.map(|left| left - 1);
                self.bytes_left = bytes.map(|left| left - row.len() as u64);
                return Row::Keep;
            }
        };
        self.counters.blocked.increment();
        if self.empties { Row::Empty } else { Row::End(refusal.clone()) }
    }

    fn holds_rows(&self) -> bool {
        self.empties
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Client;
    use crate::statement::Statement;
    use sql_classify::Lexis;

    #[test]
    fn statements_wait_for_the_rate() {
        let limits = |waits| {
            let settings = LimitsSettings { statements_per_second: Some(2), waits, ..LimitsSettings::default() };
            Limits::new("l".into(), settings)
        };
        let now = Instant::now();
        let (waiting, refusing) = (limits(true), limits(false));
        let waits: Vec<u128> = (0..4).map(|_| waiting.take("joe", 2, now).unwrap().as_millis()).collect();
        assert_eq!(waits, [0, 0, 500, 1000]);
        assert_eq!(waiting.take("ann", 2, now), Ok(Duration::ZERO), "each user has a rate of its own");
        assert_eq!((0..4).filter(|_| refusing.take("joe", 2, now).is_err()).count(), 2);
        assert!(refusing.take("joe", 2, now + Duration::from_millis(500)).is_ok());
        let error = refusing.take("joe", 2, now + Duration::from_millis(500)).unwrap_err();
        let expected = "User 'joe' has exceeded the 'statements-per-second' resource (current value: 2)";
        assert_eq!(error.message, format!("{expected} of the filter l"));
        let accepted = (0..100).take_while(|_| waiting.take("joe", 2, now).is_ok()).count();
        assert!(accepted < 30, "no statement waits for more than 10 seconds");
    }

    #[test]
    fn long_results_end() {
        for empties in [false, true] {
            let (rows_max, bytes_max) = (Some(2), Some(10));
            let limits = Limits::new("l".into(), LimitsSettings { rows_max, bytes_max, empties, ..Default::default() });
            let (counters, client) = (Arc::default(), Client::default());
            let statement = Statement::classify("SELECT 1", Lexis::default(), false);
            let (action, service) = (Action::Query, "");
            let call = Call { statement: &statement, action, client: &client, service, counters: &counters };
            let mut editor = limits.results(&call).unwrap();
            let row = |editor: &mut Box<dyn ResultEditor>, bytes: usize| editor.row(&mut vec![0; bytes], false);
            assert_eq!((row(&mut editor, 3), row(&mut editor, 3)), (Row::Keep, Row::Keep));
            let third = row(&mut editor, 3);
            editor.columns(&[]);
            let large = row(&mut editor, 11);
            match (third, large) {
                (Row::Empty, Row::Empty) => assert!(empties),
                (Row::End(rows), Row::End(bytes)) => {
                    assert!(rows.message.contains("max-rows") && rows.code == 1226 && !empties);
                    assert!(bytes.message.contains("max-bytes"));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(counters.blocked.get(), 2);
        }
    }
}

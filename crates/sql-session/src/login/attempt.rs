//! Delays of logins after failed ones, so that passwords cannot be guessed quickly. To MariaDB all
//! clients come from one address, so it cannot delay one of them.

use server::Server;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The longest time that an attempt waits. It takes one of the server's connections meanwhile, so
/// one that would have to wait longer is refused.
const WAIT_MAX: Duration = Duration::from_secs(3);

pub const THROTTLED: &str = "Access denied: too many logins from this address have failed; try again later";

/// An attempt to log in, which may be checked now.
pub struct Attempt<'s> {
    server: &'s Server,
    peer: Option<IpAddr>,
    user: String,
}

impl<'s> Attempt<'s> {
    /// Waits for the attempt's turn. Returns `None` if it must be refused unchecked.
    pub async fn begin(server: &'s Server, peer: Option<IpAddr>, user: &[u8]) -> Option<Attempt<'s>> {
        // Not the name of a MongoDB user, which has a database.
        let user = format!("{}, by SQL", String::from_utf8_lossy(user));
        let throttle = &server.access_control.throttle;
        let Some(delay) = throttle.attempt_within(WAIT_MAX, peer, &user, Instant::now()) else {
            server.sql_statistics.logins_throttled.increment();
            return None;
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Some(Attempt { server, peer, user })
    }

    /// Records that the name or the password was wrong.
    pub fn failed(self) {
        self.server.sql_statistics.logins_failed.increment();
        self.server.access_control.throttle.failed(self.peer, &self.user, Instant::now());
    }

    /// Records that the password was right.
    pub fn succeeded(self) {
        self.server.access_control.throttle.succeeded(self.peer, &self.user);
    }
}

//! The server whose log is followed: always the same, or the primary of servers that replicate.

use mariadb_client::{PrimarySource, ServerUrl};
use std::time::Duration;

#[derive(Clone)]
pub enum Followed {
    Server(ServerUrl),
    Primary(PrimarySource),
}

impl Followed {
    /// Returns the server to follow at present; waits while there is none, and says why.
    pub async fn present(&self, mut none: impl FnMut(String)) -> ServerUrl {
        let primary = match self {
            Followed::Server(url) => return url.clone(),
            Followed::Primary(primary) => primary,
        };
        let mut server = primary.server.clone();
        loop {
            if let Some(url) = server.borrow_and_update().clone() {
                return url;
            }
            none(primary.monitor.why_none());
            if server.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until another server, or none, is to be followed.
    pub async fn leaves(&self, url: &ServerUrl) {
        if let Followed::Primary(primary) = self {
            let mut server = primary.server.clone();
            if server.wait_for(|present| present.as_ref() != Some(url)).await.is_ok() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Pauses before the next attempt, which is due at once if the primary changes.
    pub async fn pause(&self, pause: Duration) {
        match self {
            Followed::Server(_) => tokio::time::sleep(pause).await,
            Followed::Primary(primary) => {
                let mut server = primary.server.clone();
                server.mark_unchanged();
                let _ = tokio::time::timeout(pause, server.changed()).await;
            }
        }
    }
}

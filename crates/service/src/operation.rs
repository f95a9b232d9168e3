//! The steps of changes of servers: each is a statement on a monitor's connection, and is logged.
//!
//! The connections hold the locks by which gateways agree ([`crate::agreement`]). The locks are
//! confirmed before the step after which a change is not undone. A step fails if its connection is
//! lost.

use crate::agreement::Votes;
use crate::gtid::GtidPosition;
use crate::observed::Observed;
use crate::order::Outcome;
use crate::plan::{self, Promotion};
use crate::settings::MonitorSettings;
use crate::statement::{change_master, literal};
use mariadb_client::server_error;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The pause between two polls of a server that applies transactions.
const PAUSE: Duration = Duration::from_millis(20);

/// Connections of clients: those that neither replicate nor belong to the server or to monitors.
const CLIENTS: &str = "SELECT id FROM information_schema.processlist \
     WHERE command NOT IN ('Binlog Dump', 'Daemon', 'Slave_IO', 'Slave_SQL', 'Slave_worker') \
     AND user NOT IN ('system user', 'event_scheduler')";

/// A change of the servers of a monitor.
pub struct Operation<'m> {
    pub settings: &'m MonitorSettings,
    pub servers: &'m mut [Observed],
    /// Whether a majority of the servers that run suffices: for orders of the administrator.
    pub is_ordered: bool,
}

impl Operation<'_> {
    /// Promotes a replica of a primary that is lost, once it has applied what it has received.
    pub async fn fail_over(&mut self, promotion: &Promotion) -> Outcome {
        let deadline = Instant::now() + self.settings.change_timeout;
        let new = promotion.new;
        if promotion.old.is_some() {
            self.await_applied(new, None, deadline).await?;
        }
        self.confirm_locks().await?;
        if let Err(error) = self.promote(new).await {
            // So that it can be promoted later.
            if let Err(error) = self.demote_again(new).await {
                tracing::warn!(monitor = self.settings.name, "{error}");
            }
            return Err(error);
        }
        self.redirect_all(&promotion.followers, new).await;
        Ok(())
    }

    /// Exchanges the primary for a replica. Until the replica is writable, a step that fails undoes
    /// those before it.
    pub async fn switch_over(&mut self, promotion: &Promotion) -> Outcome {
        let Some(old) = promotion.old else { return Err("there is no primary".into()) };
        let new = promotion.new;
        if let Err(error) = self.prepare(old, new).await {
            self.restore(old).await;
            return Err(error);
        }
        if let Err(error) = self.promote(new).await {
            // It may be writable: then the old one must not be.
            match self.demote_again(new).await {
                Ok(()) => self.restore(old).await,
                Err(_) => drop(self.run(old, "UNLOCK TABLES").await),
            }
            return Err(error);
        }
        self.redirect_all(&promotion.followers, new).await;
        // Clients that wait for the lock may not write when it is released.
        let demoted = async {
            self.disconnect_clients(old).await?;
            self.run(old, "UNLOCK TABLES").await?;
            self.follow(old, new).await
        };
        if let Err(error) = demoted.await {
            tracing::warn!(monitor = self.settings.name, "the old primary does not follow the new one: {error}");
        }
        Ok(())
    }

    /// Makes a server follow the primary, unless it has transactions that the primary lacks.
    pub async fn rejoin(&mut self, server: usize, primary: usize) -> Outcome {
        self.confirm_locks().await?;
        self.run(server, "SET GLOBAL read_only = ON").await?;
        let facts = self.fresh(server).await?;
        if facts.sources().is_empty() {
            self.disconnect_clients(server).await?;
        }
        let facts = self.fresh(server).await?;
        let of_primary = self.fresh(primary).await?;
        if plan::has_diverged(&facts, &of_primary) {
            return Err(format!("{} has transactions that the primary does not have", self.servers[server].name));
        }
        self.follow(server, primary).await
    }

    /// Makes a server read-only, and disconnects its clients, which may be writing.
    pub async fn fence(&mut self, server: usize) -> Outcome {
        self.set_read_only(server, true).await?;
        self.disconnect_clients(server).await
    }

    pub async fn set_read_only(&mut self, server: usize, is_read_only: bool) -> Outcome {
        self.confirm_locks().await?;
        self.run(server, if is_read_only { "SET GLOBAL read_only = ON" } else { "SET GLOBAL read_only = OFF" }).await
    }

    /// Ends the writes of the primary, and waits until the replica has all of them.
    async fn prepare(&mut self, old: usize, new: usize) -> Outcome {
        let deadline = Instant::now() + self.settings.change_timeout;
        self.end_writes(old, deadline).await?;
        let position = self.fresh(old).await?.binlog;
        self.await_applied(new, Some(&position), deadline).await?;
        self.confirm_locks().await
    }

    /// Makes a server read-only and locks its tables, against accounts that may write all the same.
    /// Clients whose statements do not end within half of the time are disconnected.
    async fn end_writes(&mut self, old: usize, deadline: Instant) -> Outcome {
        let half = Instant::now() + (deadline - Instant::now()) / 2;
        let mut are_disconnected = false;
        for sql in ["SET GLOBAL read_only = ON", "FLUSH TABLES WITH READ LOCK"] {
            loop {
                let Err(failure) = self.servers[old].poller.run(sql).await else { break };
                let now = Instant::now();
                if failure.sql_code() != Some(server_error::LOCK_WAIT_TIMEOUT) || now >= deadline {
                    return Err(self.explain(old, sql, &failure));
                }
                if now >= half && !are_disconnected {
                    self.disconnect_clients(old).await?;
                    are_disconnected = true;
                }
            }
            self.log(old, sql);
        }
        Ok(())
    }

    /// Lets the old primary accept writes again, after a switchover has failed.
    async fn restore(&mut self, old: usize) {
        tracing::warn!(monitor = self.settings.name, "the switchover has failed and is undone");
        for sql in ["UNLOCK TABLES", "SET GLOBAL read_only = OFF"] {
            if let Err(error) = self.run(old, sql).await {
                tracing::warn!(monitor = self.settings.name, "{error}");
            }
        }
    }

    /// Undoes a promotion that has failed.
    async fn demote_again(&mut self, new: usize) -> Outcome {
        self.run(new, "SET GLOBAL read_only = ON").await?;
        self.run(new, "START SLAVE").await
    }

    /// Waits until a server has applied what it has received, and has these transactions.
    async fn await_applied(&mut self, server: usize, position: Option<&GtidPosition>, deadline: Instant) -> Outcome {
        loop {
            let facts = self.fresh(server).await?;
            let has_position = position.is_none_or(|position| facts.current.has_all_of(position));
            if has_position && facts.current.has_all_of(&facts.received()) {
                return Ok(());
            }
            let stopped = facts.sources().iter().find(|source| !source.is_sql_running);
            let name = &self.servers[server].name;
            if let Some(source) = stopped {
                return Err(format!("{name} does not apply what it has received: {}", source.error));
            }
            if Instant::now() >= deadline {
                return Err(format!("{name} has not applied all transactions in time"));
            }
            sleep(PAUSE).await;
        }
    }

    /// Makes a replica writable. Its replication is removed last, so that it can be started again.
    async fn promote(&mut self, new: usize) -> Outcome {
        self.run(new, "STOP SLAVE").await?;
        self.run(new, "SET GLOBAL read_only = OFF").await?;
        if let Err(error) = self.run(new, "RESET SLAVE ALL").await {
            tracing::warn!(monitor = self.settings.name, "{error}");
        }
        Ok(())
    }

    /// Makes replicas follow the new primary. One that fails stays as it is.
    async fn redirect_all(&mut self, followers: &[usize], new: usize) {
        for &follower in followers {
            if let Err(error) = self.follow(follower, new).await {
                tracing::warn!(monitor = self.settings.name, "{error}");
            }
        }
    }

    async fn follow(&mut self, server: usize, primary: usize) -> Outcome {
        let facts = self.fresh(server).await?;
        let source = &self.servers[primary];
        let change = change_master(&source.address, source.tls, &self.settings.replication_account);
        self.run(server, "STOP SLAVE").await?;
        // An old primary has written transactions beside those that it has replicated.
        let mut position = facts.replicated.clone();
        position.extend(&facts.binlog);
        if facts.sources().is_empty() && position != facts.replicated {
            let sql = format!("SET GLOBAL gtid_slave_pos = {}", literal(&position.to_string()));
            self.run(server, &sql).await?;
        }
        let shown = format!("CHANGE MASTER TO {}", self.servers[primary].name);
        let changed = self.run_shown(server, &change, &shown).await;
        if changed.is_err() && facts.sources().is_empty() {
            return changed;
        }
        // Replication that has stopped would count as stopped by the administrator.
        let started = self.run(server, "START SLAVE").await;
        changed.and(started)
    }

    /// Ends the connections of clients.
    async fn disconnect_clients(&mut self, server: usize) -> Outcome {
        let sql = format!("{CLIENTS} AND user <> {} AND id <> CONNECTION_ID()", literal(&self.settings.user));
        let observed = &mut self.servers[server];
        let clients = match observed.poller.rows(&sql).await {
            Ok(rows) => rows,
            Err(failure) => return Err(self.explain(server, "SHOW PROCESSLIST", &failure)),
        };
        let ids: Vec<u64> = clients.into_iter().filter_map(|row| row.into_iter().next()??.parse().ok()).collect();
        for id in &ids {
            match self.servers[server].poller.run(&format!("KILL {id}")).await {
                Err(failure) if failure.sql_code() != Some(server_error::NO_SUCH_THREAD) => {
                    return Err(self.explain(server, "KILL", &failure));
                }
                Ok(_) | Err(_) => {}
            }
        }
        self.log(server, &format!("{} clients are disconnected", ids.len()));
        Ok(())
    }

    /// Fails unless a majority of the servers still confirms the lock.
    async fn confirm_locks(&mut self) -> Outcome {
        let mut votes = Votes { servers: self.servers.len(), ..Votes::default() };
        for server in self.servers.iter_mut() {
            votes.running += usize::from(server.is_up());
            votes.held += usize::from(server.poller.confirm_lock().await);
        }
        let of = self.settings.majority_for(self.is_ordered);
        let needed = votes.needed(of);
        if votes.are_majority(of) {
            return Ok(());
        }
        Err(format!("this gateway holds the lock on {} servers, of {needed} that are needed", votes.held))
    }

    async fn fresh(&mut self, server: usize) -> Result<crate::observation::Facts, String> {
        let server = &mut self.servers[server];
        server.fresh_facts().await.map_err(|error| format!("{}: {error}", server.name))
    }

    async fn run(&mut self, server: usize, sql: &str) -> Outcome {
        self.run_shown(server, sql, sql).await
    }

    /// Executes a statement. `shown`: its text without passwords.
    async fn run_shown(&mut self, server: usize, sql: &str, shown: &str) -> Outcome {
        match self.servers[server].poller.run(sql).await {
            Ok(_) => {
                self.log(server, shown);
                Ok(())
            }
            Err(failure) => Err(self.explain(server, shown, &failure)),
        }
    }

    fn log(&self, server: usize, step: &str) {
        tracing::info!(monitor = self.settings.name, server = self.servers[server].name, "{step}");
    }

    fn explain(&self, server: usize, step: &str, failure: &mariadb_client::Failure) -> String {
        format!("{}: {step}: {failure}", self.servers[server].name)
    }
}

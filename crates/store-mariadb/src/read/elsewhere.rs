//! Reads on other servers than the primary. A read that must see earlier writes waits on the
//! replica until it has them.

use crate::accounts::documents_account;
use crate::read_pools::ReadPools;
use crate::read_servers::{CausalReads, ReadServer};
use crate::store::MariaDbStore;
use ::store::{Namespace, ReadMode, ReadPreference, read_preference};
use mariadb_client::{Event, Failure, Lease, Result, ServerLocation, ServerUrl};
use mariadb_wire::Param;
use std::sync::Arc;

/// How long a read waits on a replica for earlier writes, if another server may answer it; and if
/// none may.
const CAUSAL_SECONDS: u64 = 1;
const CAUSAL_SECONDS_ALONE: u64 = 10;

/// Makes a node of a Galera cluster apply all that was committed before, and selects 0.
const GALERA_WAIT: &str = "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 0";

const GTID_WAIT: &str = "SELECT MASTER_GTID_WAIT(?, ?)";

impl MariaDbStore {
    /// Lends a connection to the server that the running operation may read from; `None`: it reads
    /// from the primary. Fails with 133 if no server fits its preference. `role`: the role under
    /// which statements are executed.
    pub async fn lease_elsewhere(&self, namespace: &Namespace, role: Option<&Arc<str>>) -> Result<Option<Lease>> {
        let (Some(pools), Some(preference)) = (&self.read_pools, read_preference::current()) else { return Ok(None) };
        let servers = pools.servers.choose(&preference);
        // The other modes go to the primary, or wait for one.
        let only_these = matches!(preference.mode, ReadMode::Secondary | ReadMode::Nearest);
        let seconds = match only_these && !servers.iter().any(|server| server.is_primary) {
            true => CAUSAL_SECONDS_ALONE,
            false => CAUSAL_SECONDS,
        };
        let mut to_see = None;
        for server in &servers {
            if server.is_primary {
                preference.set_server(&server.name);
                return Ok(None);
            }
            if to_see.is_none() {
                to_see = Some(self.position_to_see(pools, &preference).await?);
            }
            // A cursor that goes on elsewhere must not see an older state.
            let before = || pools.servers.position(&preference.server().filter(|before| *before != server.name)?);
            let position = to_see.clone().flatten().or_else(before);
            let catch_up = CatchUp { position: position.as_deref().unwrap_or_default(), seconds };
            match self.lease_at(pools, server, (namespace, role), &catch_up).await {
                Ok(Some(lease)) => {
                    preference.set_server(&server.name);
                    pools.servers.count_read();
                    return Ok(Some(lease));
                }
                Ok(None) => {}
                Err(failure) if failure.is_lost() || matches!(failure, Failure::Full(_)) => {
                    tracing::debug!(server = &*server.name, "a replica cannot be read: {failure}");
                    pools.servers.suspect(&server.name);
                }
                Err(failure) => return Err(failure),
            }
        }
        match only_these {
            true => Err(pools.servers.none_fits(&preference).into()),
            false => Ok(None),
        }
    }

    /// Lends a connection to a replica that has the writes that the read must see. Returns `None`
    /// if it has not in time.
    async fn lease_at(
        &self,
        pools: &ReadPools,
        server: &ReadServer,
        (namespace, role): (&Namespace, Option<&Arc<str>>),
        catch_up: &CatchUp<'_>,
    ) -> Result<Option<Lease>> {
        let pool = pools.pool(&server.url, |url| self.documents_url(url));
        let lease = async || match role {
            Some(role) => pool.lease_under(role, namespace).await,
            None => pool.lease_for(namespace).await,
        };
        let mut leased = lease().await?;
        let mut waited = catch_up.wait(&mut leased, server).await;
        if waited.as_ref().is_err_and(Failure::is_lost) {
            // The idle connection was dead.
            leased.close_idle();
            drop(leased);
            leased = lease().await?;
            waited = catch_up.wait(&mut leased, server).await;
        }
        let waited = waited?;
        if let Some(has_all) = waited {
            pools.servers.count_wait(has_all);
        }
        Ok(waited.unwrap_or(true).then_some(leased))
    }

    /// Returns the transactions that every server must have for a read.
    async fn position_to_see(&self, pools: &ReadPools, preference: &ReadPreference) -> Result<Option<String>> {
        let causal = if preference.is_causal { CausalReads::All } else { pools.servers.causal_reads() };
        let position = match causal {
            // Without a primary, no other gateway writes either.
            CausalReads::All if self.pool.has_server() => self.log_position().await?,
            CausalReads::All | CausalReads::OfGateway => self.last_writes.as_ref().map(|last| last.position()),
            CausalReads::Off => None,
        };
        Ok(position.filter(|position| !position.is_empty()))
    }

    /// Returns the primary's position in its log.
    async fn log_position(&self) -> Result<Option<String>> {
        let row = self.shared_connection.lookup(&"SELECT @@GLOBAL.gtid_binlog_pos".into(), &[]).await?;
        let Some((payload, types)) = row else { return Ok(None) };
        let mut row = mariadb_wire::row::BinaryRow::new(&payload, &types)?;
        Ok(row.next_bytes()?.map(|text| String::from_utf8_lossy(text).into_owned()))
    }

    /// Lends a connection for definitions and estimates: to the primary, or while there is none, to
    /// the server that the running operation reads from.
    pub async fn lease_for_planning(&self, namespace: &Namespace) -> Result<Lease> {
        if read_preference::is_elsewhere()
            && !self.pool.has_server()
            && let Some(lease) = self.lease_elsewhere(namespace, None).await?
        {
            return Ok(lease);
        }
        self.pool.lease_for(namespace).await
    }

    fn documents_url(&self, url: &ServerUrl) -> Option<ServerUrl> {
        self.accounts.as_ref()?;
        documents_account::target(&ServerLocation::Server(url.clone())).ok()
    }
}

/// The writes that a replica must have before it is read.
struct CatchUp<'p> {
    /// The last of them; empty if there are none.
    position: &'p str,
    /// How long to wait for them.
    seconds: u64,
}

impl CatchUp<'_> {
    /// Waits for the writes; returns whether the replica has them in time. `None`: any state of the
    /// replica will do.
    async fn wait(&self, lease: &mut Lease, server: &ReadServer) -> Result<Option<bool>> {
        if self.position.is_empty() {
            return Ok(None);
        }
        let wait = [Param::Text(self.position.as_bytes()), Param::Unsigned(self.seconds)];
        match server.is_galera {
            true => lease.queue_execute(&GALERA_WAIT.into(), &[]),
            false => lease.queue_execute(&GTID_WAIT.into(), &wait),
        }
        let mut has_all = false;
        while let Event::Row(range) = lease.next().await? {
            // -1 after the time.
            let outcome = lease.row(range)?.next_bytes()?;
            has_all = outcome.is_some_and(|outcome| outcome.iter().all(|byte| *byte == 0));
        }
        Ok(Some(has_all))
    }
}

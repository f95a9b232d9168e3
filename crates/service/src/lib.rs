//! Services: which MariaDB server an SQL client gets.
//!
//! A [`Service`] is filters → router → backends. Its [`router`] chooses the [`Backend`] of a
//! session, and the session gets a [`Lease`] of it, which says when it must end. A [`monitor`]
//! observes the backends and decides their roles, one task for each group of servers that
//! replicate. The [`Registry`] holds all of them by their names, and applies a changed
//! configuration without touching objects that have stayed the same.
//!
//! In reading order: [`role`] and [`settings`]; [`gtid`] and [`observation`] (facts of a poll),
//! [`reachability`] and [`topology`] (pure decisions), [`poll`] (the queries); [`plan`] and
//! [`agreement`] (pure decisions about changes of servers), [`operation`] (their steps),
//! [`monitor`] (the task); [`condition`], [`activity`] and [`backend`], [`slots`] (the limit of
//! connections), [`router`], [`targets`] (the servers of a service), [`sessions`] (by the ids of
//! servers), [`user_connections`], [`lease`], [`mod@service`], [`primary`] (for the document store)
//! and [`split_statistics`], [`registry`], [`report`] (for `serverStatus`).

pub mod activity;
pub mod agreement;
pub mod backend;
pub mod condition;
pub mod gtid;
pub mod lease;
pub mod monitor;
pub mod monitor_status;
pub mod observation;
pub mod observed;
pub mod operation;
pub mod order;
pub mod plan;
pub mod poll;
pub mod primary;
pub mod reachability;
pub mod registry;
pub mod report;
pub mod role;
pub mod router;
pub mod service;
pub mod sessions;
pub mod settings;
pub mod slots;
pub mod split_statistics;
pub mod statement;
pub mod targets;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod user_connections;

pub use agreement::MajorityOf;
pub use backend::Backend;
pub use condition::Mode;
pub use lease::{Assignment, Kill, Lease};
pub use monitor_status::MonitorReport;
pub use order::Order;
pub use plan::Allowed;
pub use registry::Registry;
pub use report::BackendReport;
pub use role::{ClusterKind, Role, WantedRole};
pub use router::connections::SessionEnd;
pub use service::{Candidate, ConnectError, OpenError, Service};
pub use settings::{
    Account, CausalReads, MonitorSettings, Router, Secret, ServerSettings, ServiceSettings, Settings, SplitSettings,
};
pub use sql_filter::SharedCounter;
pub use user_connections::UserConnection;

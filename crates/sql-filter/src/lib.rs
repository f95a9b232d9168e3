//! Filters of a service: steps that its statements pass before the router, and its replies after.
//!
//! A [`Filter`] checks a statement, and may refuse it. One file has each kind;
//! [`settings`] has what the configuration says about it, and [`open`] makes a filter from that.
//! A [`Pipeline`] is the filters of a service in their order. Filters are shared by all sessions of
//! all workers, so none of them waits or does I/O while it checks a statement: lines for a file
//! go through the bounded queue of a [`line_file`].
//!
//! In reading order: [`filter`] (the trait), [`refusal`], [`result_set`], [`statement`],
//! [`counters`], [`pipeline`], [`settings`], [`line_file`], [`firewall`] with [`deny_rule`] and
//! [`allow_list`], [`query_log`], [`rewrite`] with its [`template`], [`limits`],
//! [`masking`] with its [`mask_rule`] and [`masked_statement`], [`mirror`].

pub mod allow_list;
pub mod counters;
pub mod deny_rule;
pub mod filter;
pub mod firewall;
pub mod limits;
pub mod line_file;
pub mod mask_rule;
pub mod masked_statement;
pub mod masking;
pub mod mirror;
pub mod pipeline;
pub mod query_log;
pub mod refusal;
pub mod result_set;
pub mod rewrite;
pub mod settings;
pub mod shared_counter;
pub mod statement;
pub mod template;

pub use counters::Counters;
pub use filter::{Action, Call, Client, Filter, Outcome, Verdict};
pub use pipeline::Pipeline;
pub use refusal::Refusal;
pub use result_set::{Column, ResultEditor, Row};
pub use settings::{FilterKind, FilterSettings, Mode};
pub use shared_counter::SharedCounter;
pub use statement::Statement;

use std::io;
use std::sync::Arc;

/// Makes a filter, and opens its files.
pub fn open(settings: &FilterSettings) -> io::Result<Arc<dyn Filter>> {
    let name = settings.name.clone();
    Ok(match &settings.kind {
        FilterKind::Firewall(settings) => Arc::new(firewall::Firewall::open(name, settings.clone())?),
        FilterKind::Limits(settings) => Arc::new(limits::Limits::new(name, settings.clone())),
        FilterKind::Mirror(settings) => Arc::new(mirror::Mirror::new(settings.clone())),
        FilterKind::Masking(settings) => Arc::new(masking::Masking::new(name, settings.clone())),
        FilterKind::Rewrite(settings) => Arc::new(rewrite::Rewrite::new(name, settings).map_err(io::Error::other)?),
        FilterKind::QueryLog(settings) => Arc::new(query_log::QueryLog::open(settings.clone())?),
    })
}

//! A worker's counters, merged when they are read.
//!
//! Only the worker itself writes its counters, so an increment is a plain load and store. Readers
//! on other threads may see a count that is a moment old, never a torn one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    #[inline]
    pub fn subtract(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).saturating_sub(amount), Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! statistics {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// One worker's counters.
        #[derive(Debug)]
        pub struct Statistics {
            $($(#[$doc])* pub $field: Counter,)*
            /// Per command, in the table's order: executed, and failed.
            pub commands: Box<[(Counter, Counter)]>,
        }

        impl Statistics {
            pub fn new(commands: usize) -> Self {
                Statistics {
                    $($field: Counter::default(),)*
                    commands: (0..commands).map(|_| Default::default()).collect(),
                }
            }

            /// Adds another worker's counters.
            pub fn merge(&self, other: &Statistics) {
                $(self.$field.add(other.$field.get());)*
                for (own, other) in self.commands.iter().zip(&other.commands) {
                    own.0.add(other.0.get());
                    own.1.add(other.1.get());
                }
            }
        }
    };
}

statistics! {
    /// Connections open now.
    connections_current,
    /// Connections accepted since the start.
    connections_created,
    /// Connections refused because of a limit; of these, those because of the rate.
    connections_rejected,
    connections_rejected_by_rate,
    /// Requests refused because of the rate, or because memory was short.
    requests_rejected,
    /// TLS connections, by version.
    tls_1_2,
    tls_1_3,
    /// Messages received, and their bytes as they came in.
    network_requests,
    network_bytes_in,
    /// Bytes of replies as they went out.
    network_bytes_out,
    /// `opcounters`: statements, not commands.
    operations_insert,
    operations_query,
    operations_update,
    operations_delete,
    operations_getmore,
    operations_command,
    documents_inserted,
    documents_updated,
    documents_deleted,
    documents_returned,
    cursors_opened,
    cursors_timed_out,
    /// Commands that failed for a reason the client gave.
    asserts_user,
    /// Commands that ended in a panic.
    asserts_regular,
    hello_awaiting,
}

//! `$clusterTime` and `operationTime`, at the end of each reply of a replica set or router.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/sessions/driver-sessions.md#gossipping-the-cluster-time>
//!
//! They are added to the finished reply, so that caches store none. They are encoded by hand,
//! because each reply has them.

use server::cluster_clock::ClusterTime;
use server::document_cache::ReplyBody;
use server::{Server, Topology};

/// The bytes before the cluster time: the element `$clusterTime`, and the name `clusterTime`.
const BEFORE_CLUSTER_TIME: &[u8] = b"\x03$clusterTime\0\x58\0\0\0\x11clusterTime\0";

/// The bytes between the times: a signature as of a server without logins, and the name
/// `operationTime`.
const BETWEEN: &[u8] = b"\x03signature\0\x33\0\0\0\
    \x05hash\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \x12keyId\0\0\0\0\0\0\0\0\0\0\0\
    \x11operationTime\0";

/// The times of a reply.
#[derive(Clone, Copy)]
pub(super) struct ReplyTimes {
    cluster: ClusterTime,
    operation: ClusterTime,
}

impl ReplyTimes {
    /// Returns the times of a reply that is complete; `None` for a standalone server.
    #[inline]
    pub(super) fn now(server: &Server) -> Option<ReplyTimes> {
        if matches!(server.settings.topology, Topology::Standalone) {
            return None;
        }
        let operation = server.cluster_clock.committed();
        Some(ReplyTimes { cluster: server.cluster_clock.now(), operation })
    }

    /// Adds the times to the document from `start` to the end of `reply`.
    pub(super) fn append(self, reply: &mut Vec<u8>, start: usize) {
        // Nothing was written if the connection is to be closed.
        if reply.len() > start && reply.pop().is_some() {
            self.write_end(reply);
            write_length(reply, start);
        }
    }

    /// Returns a shared reply with the times added: its length, the rest of the shared part, and
    /// its end. `end`: the part that is not shared.
    pub(super) fn around(self, shared: &ReplyBody, mut end: Vec<u8>) -> ([u8; 4], ReplyBody, Vec<u8>) {
        let shared_until = if end.pop().is_some() { shared.len() } else { shared.len() - 1 };
        self.write_end(&mut end);
        let length = (shared_until + end.len()) as i32;
        (length.to_le_bytes(), shared.slice(size_of_val(&length)..shared_until), end)
    }

    fn write_end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(BEFORE_CLUSTER_TIME);
        out.extend_from_slice(&self.cluster.to_bits().to_le_bytes());
        out.extend_from_slice(BETWEEN);
        out.extend_from_slice(&self.operation.to_bits().to_le_bytes());
        out.push(0);
    }
}

fn write_length(reply: &mut [u8], start: usize) {
    let length = (reply.len() - start) as i32;
    if let Some(bytes) = reply.get_mut(start..start + size_of_val(&length)) {
        bytes.copy_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, Value};

    const TIMES: ReplyTimes = ReplyTimes { cluster: ClusterTime::new(7, 8), operation: ClusterTime::new(5, 6) };

    fn expected() -> Vec<u8> {
        let expected = DocBuf::build(|writer| {
            writer.append("ok", 1.0);
            {
                let mut cluster_time = writer.document("$clusterTime");
                cluster_time.append("clusterTime", Value::Timestamp { time: 7, increment: 8 });
                let mut signature = cluster_time.document("signature");
                signature.append("hash", Value::Binary { subtype: 0, bytes: &[0; 20] });
                signature.append("keyId", 0_i64);
            }
            writer.append("operationTime", Value::Timestamp { time: 5, increment: 6 });
        });
        expected.into_vec()
    }

    #[test]
    fn times_are_appended_to_a_reply() {
        let mut reply = b"header".to_vec();
        reply.extend(DocBuf::build(|writer| writer.append("ok", 1.0)).into_vec());
        TIMES.append(&mut reply, 6);
        assert_eq!(reply[6..], expected());
        let mut nothing = b"header".to_vec();
        TIMES.append(&mut nothing, 6);
        assert_eq!(nothing, b"header");
    }

    #[test]
    fn times_are_put_around_a_shared_reply() {
        let reply = DocBuf::build(|writer| writer.append("ok", 1.0)).into_vec();
        for split in [reply.len(), 9] {
            let (shared, end) = reply.split_at(split);
            let shared = ReplyBody::Bytes(bytes::Bytes::copy_from_slice(shared));
            let (length, shared, end) = TIMES.around(&shared, end.to_vec());
            assert_eq!([&length[..], &shared, &end].concat(), expected());
        }
    }
}

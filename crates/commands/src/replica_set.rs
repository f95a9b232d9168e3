//! The replica set of one member that a replica-set topology presents: its configuration, and its
//! times in the replies to writes.

use crate::call::Call;
use document::{DocWriter, ObjectId};
use server::cluster_clock::ClusterTime;
use server::{Topology, Worker, clock};
use store::FeedPosition;

/// The only election.
pub const ELECTION: ObjectId = ObjectId([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1]);

/// Appends a time of replication.
pub fn write_time(name: &str, time: ClusterTime, writer: &mut DocWriter<'_>) {
    let mut optime = writer.document(name);
    optime.append("ts", time.value());
    optime.append("t", 1_i64);
}

/// Gives a time to a write that has been committed.
pub fn note_write(worker: &Worker) {
    let clock = &worker.server.cluster_clock;
    let latest = worker.store.change_feed().map(|feed| feed.latest());
    match latest.filter(|latest| *latest != FeedPosition::default()) {
        // Streams that start at this time must not miss later writes.
        Some(latest) => clock.note_commit(ClusterTime::new(latest.time, latest.increment)),
        None => clock.note_write(clock::now_seconds()),
    }
}

/// Appends the election and the time of a write, as a member of a replica set does.
pub fn write_outcome_time(call: &Call<'_>, reply: &mut DocWriter<'_>) {
    if !matches!(call.worker.server.settings.topology, Topology::ReplicaSet { .. }) {
        return;
    }
    // A transaction has no time before its commit.
    if !call.envelope.in_transaction {
        note_write(call.worker);
    }
    reply.append("electionId", ELECTION);
    write_time("opTime", call.worker.server.cluster_clock.committed(), reply);
}

/// Writes the configuration of the set.
pub fn write_config(name: &str, advertised: &str, config: &mut DocWriter<'_>) {
    config.append("_id", name);
    config.append("version", 1);
    config.append("term", 1);
    {
        let mut members = config.array("members");
        let mut member = members.document();
        member.append("_id", 0);
        member.append("host", advertised);
        member.append("arbiterOnly", false);
        member.append("buildIndexes", true);
        member.append("hidden", false);
        member.append("priority", 1.0);
        drop(member.document("tags"));
        member.append("secondaryDelaySecs", 0_i64);
        member.append("votes", 1);
    }
    config.append("protocolVersion", 1_i64);
    config.append("writeConcernMajorityJournalDefault", true);
    let mut settings = config.document("settings");
    settings.append("chainingAllowed", true);
    settings.append("heartbeatIntervalMillis", 2000);
    settings.append("heartbeatTimeoutSecs", 10);
    settings.append("electionTimeoutMillis", 10_000);
    settings.append("catchUpTimeoutMillis", -1);
    settings.append("catchUpTakeoverDelayMillis", 30_000);
    drop(settings.document("getLastErrorModes"));
    let mut concern = settings.document("getLastErrorDefaults");
    concern.append("w", 1);
    concern.append("wtimeout", 0);
}

//! The names of stages: which exist, which do not run here, and where they may be.

use super::unpack_bucket::UNPACK_BUCKET;
use error::{Code, Error};

/// The stages that run over a collection's documents.
pub(super) const STAGES: &[&str] = &[
    "$_internalInhibitOptimization",
    "$_internalSplitPipeline",
    "$addFields",
    "$bucket",
    "$bucketAuto",
    "$count",
    "$densify",
    "$facet",
    "$fill",
    "$geoNear",
    "$graphLookup",
    "$group",
    "$limit",
    "$lookup",
    "$match",
    "$merge",
    "$out",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$sample",
    "$set",
    "$setWindowFields",
    "$skip",
    "$sort",
    "$sortByCount",
    "$unionWith",
    "$unset",
    "$unwind",
    UNPACK_BUCKET,
];

/// Stages that are allowed only as the first one.
pub(super) const FIRST_ONLY: &[&str] = &[
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$documents",
    "$geoNear",
    "$indexStats",
    "$listCatalog",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];

/// Stages that only a MongoDB server itself uses.
const INTERNAL: &[&str] = &[
    "$_addReshardingResumeId",
    "$_internalBoundedSort",
    "$_internalChangeStreamAddPostImage",
    "$_internalChangeStreamAddPreImage",
    "$_internalChangeStreamCheckInvalidate",
    "$_internalChangeStreamCheckResumability",
    "$_internalChangeStreamCheckTopologyChange",
    "$_internalChangeStreamOplogMatch",
    "$_internalChangeStreamTransform",
    "$_internalChangeStreamUnwindTransaction",
    "$_internalDensify",
    "$_internalFindAndModifyImageLookup",
    "$_internalReshardingIterateTransaction",
    "$_internalReshardingOwnershipMatch",
    "$queue",
    "$setVariableFromSubPipeline",
];

/// The error for stages that list sessions in the wrong namespace.
pub const SESSIONS_NAMESPACE: &str = "$listSessions may only be run against config.system.sessions";
pub const LOCAL_SESSIONS_NAMESPACE: &str =
    "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection";

/// Returns the error for change streams: there is no oplog to read changes from.
pub fn no_change_streams() -> Error {
    Error::new(Code(40573), "The $changeStream stage is only supported on replica sets")
}

/// Returns the error for a stage that does not exist or does not run in a pipeline over a
/// collection.
pub(super) fn unsupported_stage(name: &str) -> Error {
    match name {
        "$changeStream" => no_change_streams(),
        "$documents" => Error::new(Code::INVALID_NAMESPACE, "'$documents' can only be run with {aggregate: 1}"),
        "$currentOp" => Error::new(
            Code::INVALID_NAMESPACE,
            "$currentOp must be run against the 'admin' database with {aggregate: 1}",
        ),
        "$listSessions" => Error::new(Code::INVALID_NAMESPACE, SESSIONS_NAMESPACE),
        "$listLocalSessions" => Error::new(Code::INVALID_NAMESPACE, LOCAL_SESSIONS_NAMESPACE),
        "$operationMetrics" => Error::new(
            Code::COMMAND_NOT_SUPPORTED,
            "The aggregateOperationResourceConsumption server parameter is not set",
        ),
        "$shardedDataDistribution" => {
            Error::new(Code(6789101), "The $shardedDataDistribution stage can only be run on mongoS")
        }
        "$listCachedAndActiveUsers" => {
            Error::new(Code(224), "$listCachedAndActiveUsers is not allowed with the current configuration")
        }
        _ if FIRST_ONLY.contains(&name) => {
            Error::new(Code(40602), format!("{name} is only valid as the first stage in a pipeline"))
        }
        _ if INTERNAL.contains(&name) => Error::new(Code(5491300), format!("{name}' is not allowed in user requests")),
        _ => Error::new(Code(40324), format!("Unrecognized pipeline stage name: '{name}'")),
    }
}

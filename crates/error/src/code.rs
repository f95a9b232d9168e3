//! MongoDB's error codes and their names.
//!
//! Source: the list of error codes in MongoDB's manual, checked against what a 6.0 server answers. Codes that have
//! no name of their own are called `Location<code>`, as the server calls them.

use std::borrow::Cow;

/// A MongoDB error code. Codes without a constant are written `Code(17280)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($code:literal $constant:ident $name:literal)*) => {
        impl Code {
            $(pub const $constant: Code = Code($code);)*

            /// The code's `codeName`.
            pub fn name(self) -> Cow<'static, str> {
                match self.0 {
                    $($code => Cow::Borrowed($name),)*
                    code => Cow::Owned(format!("Location{code}")),
                }
            }
        }
    };
}

codes! {
    1 INTERNAL_ERROR "InternalError"
    2 BAD_VALUE "BadValue"
    4 NO_SUCH_KEY "NoSuchKey"
    6 HOST_UNREACHABLE "HostUnreachable"
    7 HOST_NOT_FOUND "HostNotFound"
    8 UNKNOWN_ERROR "UnknownError"
    9 FAILED_TO_PARSE "FailedToParse"
    10 CANNOT_MUTATE_OBJECT "CannotMutateObject"
    11 USER_NOT_FOUND "UserNotFound"
    12 UNSUPPORTED_FORMAT "UnsupportedFormat"
    13 UNAUTHORIZED "Unauthorized"
    14 TYPE_MISMATCH "TypeMismatch"
    15 OVERFLOW "Overflow"
    16 INVALID_LENGTH "InvalidLength"
    17 PROTOCOL_ERROR "ProtocolError"
    18 AUTHENTICATION_FAILED "AuthenticationFailed"
    20 ILLEGAL_OPERATION "IllegalOperation"
    22 INVALID_BSON "InvalidBSON"
    26 NAMESPACE_NOT_FOUND "NamespaceNotFound"
    27 INDEX_NOT_FOUND "IndexNotFound"
    28 PATH_NOT_VIABLE "PathNotViable"
    31 ROLE_NOT_FOUND "RoleNotFound"
    40 CONFLICTING_UPDATE_OPERATORS "ConflictingUpdateOperators"
    43 CURSOR_NOT_FOUND "CursorNotFound"
    48 NAMESPACE_EXISTS "NamespaceExists"
    50 MAX_TIME_MS_EXPIRED "MaxTimeMSExpired"
    52 DOLLAR_PREFIXED_FIELD_NAME "DollarPrefixedFieldName"
    53 INVALID_ID_FIELD "InvalidIdField"
    54 NOT_SINGLE_VALUE_FIELD "NotSingleValueField"
    56 EMPTY_FIELD_NAME "EmptyFieldName"
    57 DOTTED_FIELD_NAME "DottedFieldName"
    59 COMMAND_NOT_FOUND "CommandNotFound"
    61 SHARD_KEY_NOT_FOUND "ShardKeyNotFound"
    66 IMMUTABLE_FIELD "ImmutableField"
    67 CANNOT_CREATE_INDEX "CannotCreateIndex"
    68 INDEX_ALREADY_EXISTS "IndexAlreadyExists"
    72 INVALID_OPTIONS "InvalidOptions"
    73 INVALID_NAMESPACE "InvalidNamespace"
    76 NO_REPLICATION_ENABLED "NoReplicationEnabled"
    79 UNKNOWN_REPL_WRITE_CONCERN "UnknownReplWriteConcern"
    85 INDEX_OPTIONS_CONFLICT "IndexOptionsConflict"
    86 INDEX_KEY_SPECS_CONFLICT "IndexKeySpecsConflict"
    89 NETWORK_TIMEOUT "NetworkTimeout"
    90 CALLBACK_CANCELED "CallbackCanceled"
    91 SHUTDOWN_IN_PROGRESS "ShutdownInProgress"
    96 OPERATION_FAILED "OperationFailed"
    100 UNSATISFIABLE_WRITE_CONCERN "UnsatisfiableWriteConcern"
    112 WRITE_CONFLICT "WriteConflict"
    115 COMMAND_NOT_SUPPORTED "CommandNotSupported"
    121 DOCUMENT_VALIDATION_FAILURE "DocumentValidationFailure"
    123 NOT_A_REPLICA_SET "NotAReplicaSet"
    125 COMMAND_FAILED "CommandFailed"
    136 CAPPED_POSITION_LOST "CappedPositionLost"
    143 CURSOR_IN_USE "CursorInUse"
    146 EXCEEDED_MEMORY_LIMIT "ExceededMemoryLimit"
    159 DURATION_OVERFLOW "DurationOverflow"
    165 VIEW_DEPTH_LIMIT_EXCEEDED "ViewDepthLimitExceeded"
    166 COMMAND_NOT_SUPPORTED_ON_VIEW "CommandNotSupportedOnView"
    167 OPTION_NOT_SUPPORTED_ON_VIEW "OptionNotSupportedOnView"
    168 INVALID_PIPELINE_OPERATOR "InvalidPipelineOperator"
    171 CANNOT_INDEX_PARALLEL_ARRAYS "CannotIndexParallelArrays"
    172 TRANSPORT_SESSION_CLOSED "TransportSessionClosed"
    175 QUERY_PLAN_KILLED "QueryPlanKilled"
    181 AMBIGUOUS_INDEX_KEY_PATTERN "AmbiguousIndexKeyPattern"
    186 CLIENT_METADATA_CANNOT_BE_MUTATED "ClientMetadataCannotBeMutated"
    189 PRIMARY_STEPPED_DOWN "PrimarySteppedDown"
    196 CANNOT_IMPLICITLY_CREATE_COLLECTION "CannotImplicitlyCreateCollection"
    197 INVALID_INDEX_SPECIFICATION_OPTION "InvalidIndexSpecificationOption"
    203 SHARDING_STATE_NOT_INITIALIZED "ShardingStateNotInitialized"
    206 NO_SUCH_SESSION "NoSuchSession"
    207 INVALID_UUID "InvalidUUID"
    217 INCOMPLETE_TRANSACTION_HISTORY "IncompleteTransactionHistory"
    225 TRANSACTION_TOO_OLD "TransactionTooOld"
    237 CURSOR_KILLED "CursorKilled"
    238 NOT_IMPLEMENTED "NotImplemented"
    239 SNAPSHOT_TOO_OLD "SnapshotTooOld"
    251 NO_SUCH_TRANSACTION "NoSuchTransaction"
    256 TRANSACTION_COMMITTED "TransactionCommitted"
    257 TRANSACTION_TOO_LARGE "TransactionTooLarge"
    262 EXCEEDED_TIME_LIMIT "ExceededTimeLimit"
    263 OPERATION_NOT_SUPPORTED_IN_TRANSACTION "OperationNotSupportedInTransaction"
    276 INDEX_BUILD_ABORTED "IndexBuildAborted"
    286 CHANGE_STREAM_HISTORY_LOST "ChangeStreamHistoryLost"
    290 TRANSACTION_EXCEEDED_LIFETIME_LIMIT_SECONDS "TransactionExceededLifetimeLimitSeconds"
    291 NO_QUERY_EXECUTION_PLANS "NoQueryExecutionPlans"
    292 QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED "QueryExceededMemoryLimitNoDiskUseAllowed"
    303 INVALID_SEED_LIST "InvalidSeedList"
    309 CONVERSION_FAILURE "ConversionFailure"
    322 API_VERSION_ERROR "APIVersionError"
    334 MECHANISM_UNAVAILABLE "MechanismUnavailable"
    9001 SOCKET_EXCEPTION "SocketException"
    10003 CANNOT_GROW_DOCUMENT_IN_CAPPED_NAMESPACE "CannotGrowDocumentInCappedNamespace"
    10107 NOT_WRITABLE_PRIMARY "NotWritablePrimary"
    10334 BSON_OBJECT_TOO_LARGE "BSONObjectTooLarge"
    11000 DUPLICATE_KEY "DuplicateKey"
    11600 INTERRUPTED_AT_SHUTDOWN "InterruptedAtShutdown"
    11601 INTERRUPTED "Interrupted"
    11602 INTERRUPTED_DUE_TO_REPL_STATE_CHANGE "InterruptedDueToReplStateChange"
    13297 DATABASE_DIFFER_CASE "DatabaseDifferCase"
    13388 STALE_CONFIG "StaleConfig"
    13435 NOT_PRIMARY_NO_SECONDARY_OK "NotPrimaryNoSecondaryOk"
    13436 NOT_PRIMARY_OR_SECONDARY "NotPrimaryOrSecondary"
    14031 OUT_OF_DISK_SPACE "OutOfDiskSpace"
}

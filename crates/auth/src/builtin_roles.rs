//! The roles that each server has.
//!
//! Source: what MongoDB 6.0.5 answers to `rolesInfo`, which a test compares with this table.

use crate::action::Action::{self, *};
use crate::action::ActionSet;
use crate::name::RoleName;
use crate::privilege::{self, Privilege};
use crate::resource::ResourcePattern;
use Part::{Allow, Include};
use Target::{
    AnyBuckets, AnyDatabase, AnyResource, Cluster, Collection, CollectionOfAny, Database, OwnCollection, OwnDatabase,
};

/// A built-in role.
struct BuiltinRole {
    name: &'static str,
    /// Whether it exists in the database `admin` only.
    admin_only: bool,
    parts: &'static [Part],
}

enum Part {
    /// The privileges of another role.
    Include(&'static BuiltinRole),
    Allow(Target, ActionSet),
}

enum Target {
    Cluster,
    AnyResource,
    AnyDatabase,
    AnyBuckets,
    CollectionOfAny(&'static str),
    /// The role's own database.
    OwnDatabase,
    OwnCollection(&'static str),
    Database(&'static str),
    Collection(&'static str, &'static str),
}

/// Returns whether a name is that of a built-in role.
pub fn exists(name: &RoleName) -> bool {
    find(name).is_some()
}

/// Returns the names of the built-in roles of a database, in their order.
pub fn names(db: &str) -> impl Iterator<Item = RoleName> + '_ {
    let exists = move |name: &RoleName| exists(name);
    ROLES.iter().map(move |role| RoleName::new(role.name, db)).filter(exists)
}

/// Returns the privileges of a built-in role, each pattern once; `None` if there is no such role.
pub fn privileges(name: &RoleName) -> Option<Vec<Privilege>> {
    let mut list = Vec::new();
    collect(find(name)?, &name.db, &mut list);
    Some(list)
}

fn find(name: &RoleName) -> Option<&'static BuiltinRole> {
    let is_named = |role: &&&BuiltinRole| role.name == &*name.role && (!role.admin_only || &*name.db == "admin");
    // Users of `$external` have roles of other databases.
    ROLES.iter().find(is_named).copied().filter(|_| !name.db.is_empty() && &*name.db != "$external")
}

fn collect(role: &BuiltinRole, db: &str, list: &mut Vec<Privilege>) {
    for part in role.parts {
        match part {
            Include(role) => collect(role, db, list),
            Allow(target, actions) => privilege::add(list, Privilege::new(target.pattern(db), *actions)),
        }
    }
}

impl Target {
    fn pattern(&self, own: &str) -> ResourcePattern {
        match self {
            Cluster => ResourcePattern::Cluster,
            AnyResource => ResourcePattern::AnyResource,
            AnyDatabase => ResourcePattern::any_ordinary(),
            AnyBuckets => ResourcePattern::buckets("", ""),
            CollectionOfAny(collection) => ResourcePattern::collection("", collection),
            OwnDatabase => ResourcePattern::database(own),
            OwnCollection(collection) => ResourcePattern::collection(own, collection),
            Database(db) => ResourcePattern::database(db),
            Collection(db, collection) => ResourcePattern::collection(db, collection),
        }
    }
}

const fn actions(actions: &[Action]) -> ActionSet {
    ActionSet::of(actions)
}

const READING: ActionSet = actions(&[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
]);
const WRITING: ActionSet = READING.union(actions(&[
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    DropIndex,
    Insert,
    Remove,
    RenameCollectionSameDb,
    Update,
]));
const ADMINISTRATION: ActionSet = actions(&[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDb,
    StorageDetails,
    Validate,
]);
const PROFILE: ActionSet = READING.union(actions(&[ConvertToCapped, CreateCollection, DropCollection]));
const USERS: ActionSet = actions(&[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
]);
const USER_COLLECTION: ActionSet = READING.union(actions(&[CreateIndex, DropIndex]));
const MONITORING: ActionSet = actions(&[CollStats, DbStats, GetDatabaseVersion, GetShardVersion, IndexStats]);
const SHARDING: ActionSet = actions(&[
    ClearJumboFlag,
    EnableSharding,
    MoveChunk,
    RefineCollectionShardKey,
    ReshardCollection,
    SplitChunk,
    SplitVector,
]);
const CHANGES: ActionSet = actions(&[Insert, Remove, Update]);
const RESTORING: ActionSet = actions(&[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Insert,
]);
const FIND: ActionSet = actions(&[Find]);

const fn of_databases(name: &'static str, parts: &'static [Part]) -> BuiltinRole {
    BuiltinRole { name, admin_only: false, parts }
}

const fn of_admin(name: &'static str, parts: &'static [Part]) -> BuiltinRole {
    BuiltinRole { name, admin_only: true, parts }
}

const ROLES: &[&BuiltinRole] = &[
    &QUERYABLE_BACKUP,
    &SYSTEM,
    &BACKUP,
    &CLUSTER_ADMIN,
    &CLUSTER_MANAGER,
    &CLUSTER_MONITOR,
    &DB_ADMIN,
    &DB_ADMIN_ANY_DATABASE,
    &DB_OWNER,
    &DIRECT_SHARD_OPERATIONS,
    &ENABLE_SHARDING,
    &HOST_MANAGER,
    &READ,
    &READ_ANY_DATABASE,
    &READ_WRITE,
    &READ_WRITE_ANY_DATABASE,
    &RESTORE,
    &ROOT,
    &USER_ADMIN,
    &USER_ADMIN_ANY_DATABASE,
];

static READ: BuiltinRole =
    of_databases("read", &[Allow(OwnDatabase, READING), Allow(OwnCollection("system.js"), READING)]);
static READ_WRITE: BuiltinRole =
    of_databases("readWrite", &[Allow(OwnDatabase, WRITING), Allow(OwnCollection("system.js"), WRITING)]);
static DB_ADMIN: BuiltinRole =
    of_databases("dbAdmin", &[Allow(OwnDatabase, ADMINISTRATION), Allow(OwnCollection("system.profile"), PROFILE)]);
static USER_ADMIN: BuiltinRole = of_databases("userAdmin", &[Allow(OwnDatabase, USERS)]);
static DB_OWNER: BuiltinRole =
    of_databases("dbOwner", &[Include(&READ_WRITE), Include(&DB_ADMIN), Include(&USER_ADMIN)]);
static ENABLE_SHARDING: BuiltinRole = of_databases(
    "enableSharding",
    &[Allow(AnyDatabase, actions(&[EnableSharding, RefineCollectionShardKey, ReshardCollection]))],
);

static SYSTEM: BuiltinRole = of_admin("__system", &[Allow(AnyResource, ActionSet::ANY)]);
static DIRECT_SHARD_OPERATIONS: BuiltinRole = of_admin("directShardOperations", &[]);
static READ_ANY_DATABASE: BuiltinRole = of_admin(
    "readAnyDatabase",
    &[
        Allow(AnyDatabase, READING),
        Allow(Cluster, actions(&[ListDatabases])),
        Allow(CollectionOfAny("system.js"), READING),
        Allow(AnyBuckets, READING),
    ],
);
static READ_WRITE_ANY_DATABASE: BuiltinRole = of_admin(
    "readWriteAnyDatabase",
    &[
        Allow(AnyDatabase, WRITING),
        Allow(Cluster, actions(&[ListDatabases])),
        Allow(CollectionOfAny("system.js"), WRITING),
        Allow(AnyBuckets, WRITING),
    ],
);
static DB_ADMIN_ANY_DATABASE: BuiltinRole = of_admin(
    "dbAdminAnyDatabase",
    &[
        Allow(Cluster, actions(&[ListDatabases, ApplyOps])),
        Allow(AnyDatabase, ADMINISTRATION),
        Allow(CollectionOfAny("system.profile"), PROFILE),
        Allow(AnyBuckets, ADMINISTRATION),
    ],
);
static USER_ADMIN_ANY_DATABASE: BuiltinRole = of_admin(
    "userAdminAnyDatabase",
    &[
        Allow(AnyDatabase, USERS.union(actions(&[ListCachedAndActiveUsers]))),
        Allow(Database("local"), USERS),
        Allow(Database("config"), USERS),
        Allow(Cluster, actions(&[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases, ViewUser])),
        Allow(CollectionOfAny("system.users"), READING),
        Allow(Collection("admin", "system.users"), USER_COLLECTION),
        Allow(Collection("admin", "system.roles"), USER_COLLECTION),
        Allow(Collection("admin", "system.version"), READING),
        Allow(Collection("admin", "system.backup_users"), READING),
    ],
);
static CLUSTER_MONITOR: BuiltinRole = of_admin(
    "clusterMonitor",
    &[
        Allow(
            Cluster,
            actions(&[
                AllCollectionStats,
                CheckFreeMonitoringStatus,
                ConnPoolStats,
                GetDefaultRwConcern,
                GetCmdLineOpts,
                GetLog,
                GetParameter,
                GetShardMap,
                HostInfo,
                Inprog,
                ListDatabases,
                ListSessions,
                ListShards,
                Netstat,
                OperationMetrics,
                ReplSetGetConfig,
                ReplSetGetStatus,
                ServerStatus,
                ShardedDataDistribution,
                ShardingState,
                Top,
                UseUuid,
            ]),
        ),
        Allow(AnyDatabase, MONITORING),
        Allow(Database("config"), READING.union(MONITORING)),
        Allow(Collection("config", "system.sessions"), MONITORING),
        Allow(Database("local"), READING.union(MONITORING)),
        Allow(Collection("config", "system.js"), READING),
        Allow(Collection("local", "system.js"), READING),
        Allow(Collection("local", "system.replset"), FIND),
        Allow(Collection("local", "replset.election"), FIND),
        Allow(Collection("local", "replset.minvalid"), FIND),
        Allow(CollectionOfAny("system.profile"), FIND),
    ],
);
static HOST_MANAGER: BuiltinRole = of_admin(
    "hostManager",
    &[
        Allow(
            Cluster,
            actions(&[
                ApplicationMessage,
                AuditConfigure,
                ConnPoolSync,
                DropConnections,
                FlushRouterConfig,
                Fsync,
                InvalidateUserCache,
                KillAnyCursor,
                KillAnySession,
                Killop,
                LogRotate,
                OidReset,
                ReplSetResizeOplog,
                Resync,
                RotateCertificates,
                SetParameter,
                Shutdown,
                Touch,
                TrafficRecord,
                Unlock,
            ]),
        ),
        Allow(AnyDatabase, actions(&[KillCursors])),
    ],
);
static CLUSTER_MANAGER: BuiltinRole = of_admin(
    "clusterManager",
    &[
        Allow(
            Cluster,
            actions(&[
                AddShard,
                AppendOplogNote,
                ApplicationMessage,
                CleanupOrphaned,
                FlushRouterConfig,
                GetClusterParameter,
                GetDefaultRwConcern,
                ListSessions,
                ListShards,
                RemoveShard,
                ReplSetConfigure,
                ReplSetGetConfig,
                ReplSetGetStatus,
                ReplSetStateChange,
                Resync,
                RunTenantMigration,
                SetClusterParameter,
                SetDefaultRwConcern,
                SetFeatureCompatibilityVersion,
                SetFreeMonitoring,
            ]),
        ),
        Allow(AnyDatabase, SHARDING),
        Allow(AnyBuckets, SHARDING),
        Allow(Database("config"), READING.union(SHARDING).union(CHANGES)),
        Allow(Database("local"), SHARDING.union(CHANGES)),
        Allow(Collection("local", "system.replset"), READING),
        Allow(Collection("config", "system.js"), READING),
        Allow(AnyResource, actions(&[DbCheck])),
        Allow(Collection("local", "system.healthlog"), READING),
        Allow(Collection("local", "replset.election"), CHANGES),
        Allow(Collection("local", "replset.minvalid"), CHANGES),
    ],
);
static CLUSTER_ADMIN: BuiltinRole = of_admin(
    "clusterAdmin",
    &[
        Include(&CLUSTER_MONITOR),
        Include(&HOST_MANAGER),
        Include(&CLUSTER_MANAGER),
        Allow(AnyDatabase, actions(&[DropDatabase])),
        Allow(AnyResource, actions(&[ExportCollection, ImportCollection])),
    ],
);
static QUERYABLE_BACKUP: BuiltinRole = of_admin(
    "__queryableBackup",
    &[
        Allow(AnyResource, actions(&[CollStats, ListCollections, ListIndexes])),
        Allow(AnyDatabase, FIND),
        Allow(AnyBuckets, FIND),
        Allow(Cluster, actions(&[GetParameter, ListDatabases, UseUuid])),
        Allow(Database("config"), FIND),
        Allow(Database("local"), FIND),
        Allow(Collection("local", "replset.election"), FIND),
        Allow(Collection("local", "replset.minvalid"), FIND),
        Allow(CollectionOfAny("system.js"), FIND),
        Allow(CollectionOfAny("system.users"), FIND),
        Allow(CollectionOfAny("system.profile"), FIND),
        Allow(Collection("admin", "system.backup_users"), FIND),
        Allow(Collection("admin", "system.roles"), FIND),
        Allow(Collection("admin", "system.version"), FIND),
        Allow(Collection("config", "settings"), FIND),
    ],
);
static BACKUP: BuiltinRole = of_admin(
    "backup",
    &[
        Allow(Cluster, actions(&[AppendOplogNote, ServerStatus, SetUserWriteBlockMode])),
        Allow(Collection("config", "settings"), actions(&[Insert, Update])),
        Include(&QUERYABLE_BACKUP),
    ],
);
static RESTORE: BuiltinRole = of_admin(
    "restore",
    &[
        Allow(AnyDatabase, RESTORING.union(USERS)),
        Allow(CollectionOfAny("system.js"), RESTORING),
        Allow(AnyResource, actions(&[ListCollections])),
        Allow(Database("config"), RESTORING),
        Allow(AnyBuckets, RESTORING),
        Allow(Collection("local", "system.replset"), RESTORING),
        Allow(Collection("local", "replset.election"), RESTORING),
        Allow(Collection("local", "replset.minvalid"), RESTORING),
        Allow(Database("local"), RESTORING),
        Allow(Collection("admin", "tempusers"), FIND),
        Allow(Collection("admin", "temproles"), FIND),
        Allow(Collection("admin", "system.backup_users"), RESTORING),
        Allow(Collection("admin", "system.version"), RESTORING.union(FIND)),
        Allow(CollectionOfAny("system.users"), RESTORING.union(actions(&[Find, Remove, Update]))),
        Allow(
            Cluster,
            actions(&[BypassWriteBlockingMode, ForceUuid, GetParameter, SetUserWriteBlockMode, UseUuid, ApplyOps]),
        ),
        Allow(Collection("admin", "system.roles"), actions(&[CreateIndex])),
    ],
);
static ROOT: BuiltinRole = of_admin(
    "root",
    &[
        Include(&CLUSTER_ADMIN),
        Include(&USER_ADMIN_ANY_DATABASE),
        Include(&DB_ADMIN_ANY_DATABASE),
        Include(&READ_WRITE_ANY_DATABASE),
        Allow(Collection("config", "settings"), actions(&[Find, Insert, Update])),
        Include(&RESTORE),
        Allow(Cluster, actions(&[UseTenant])),
        Allow(AnyResource, actions(&[CollStats, ListIndexes, Validate])),
        Allow(Collection("config", "system.preimages"), actions(&[Find, Remove])),
    ],
);

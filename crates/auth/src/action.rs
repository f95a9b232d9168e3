//! The actions that a privilege allows.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/privilege-actions/>, and the names that a
//! 6.0 server accepts.

use std::fmt;

macro_rules! actions {
    ($($variant:ident $name:literal)*) => {
        /// An action, in the order in which MongoDB lists actions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Action {
            $($variant,)*
        }

        impl Action {
            /// All actions, in their order.
            pub const ALL: &'static [Action] = &[$(Action::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Action::$variant => $name,)*
                }
            }

            /// Returns the action of a name; `None` if there is none.
            pub fn parse(name: &str) -> Option<Action> {
                match name {
                    $($name => Some(Action::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

actions! {
    AddShard "addShard"
    AdvanceClusterTime "advanceClusterTime"
    AllCollectionStats "allCollectionStats"
    AnyAction "anyAction"
    AppendOplogNote "appendOplogNote"
    ApplicationMessage "applicationMessage"
    AuditConfigure "auditConfigure"
    AuditLogRotate "auditLogRotate"
    AuthCheck "authCheck"
    Authenticate "authenticate"
    AuthSchemaUpgrade "authSchemaUpgrade"
    BypassDocumentValidation "bypassDocumentValidation"
    BypassWriteBlockingMode "bypassWriteBlockingMode"
    ChangeCustomData "changeCustomData"
    ChangePassword "changePassword"
    ChangeOwnPassword "changeOwnPassword"
    ChangeOwnCustomData "changeOwnCustomData"
    ChangeStream "changeStream"
    CheckFreeMonitoringStatus "checkFreeMonitoringStatus"
    CleanupOrphaned "cleanupOrphaned"
    ClearJumboFlag "clearJumboFlag"
    CloseAllDatabases "closeAllDatabases"
    CollMod "collMod"
    CollStats "collStats"
    Compact "compact"
    CompactStructuredEncryptionData "compactStructuredEncryptionData"
    ConnPoolStats "connPoolStats"
    ConnPoolSync "connPoolSync"
    ConvertToCapped "convertToCapped"
    CpuProfiler "cpuProfiler"
    CreateCollection "createCollection"
    CreateDatabase "createDatabase"
    CreateIndex "createIndex"
    CreateRole "createRole"
    CreateUser "createUser"
    DbCheck "dbCheck"
    DbHash "dbHash"
    DbStats "dbStats"
    DropAllRolesFromDatabase "dropAllRolesFromDatabase"
    DropAllUsersFromDatabase "dropAllUsersFromDatabase"
    DropCollection "dropCollection"
    DropConnections "dropConnections"
    DropDatabase "dropDatabase"
    DropIndex "dropIndex"
    DropRole "dropRole"
    DropUser "dropUser"
    Emptycapped "emptycapped"
    EnableProfiler "enableProfiler"
    EnableSharding "enableSharding"
    ExportCollection "exportCollection"
    Find "find"
    FlushRouterConfig "flushRouterConfig"
    ForceUuid "forceUUID"
    Fsync "fsync"
    GetClusterParameter "getClusterParameter"
    GetDatabaseVersion "getDatabaseVersion"
    GetDefaultRwConcern "getDefaultRWConcern"
    GetCmdLineOpts "getCmdLineOpts"
    GetLog "getLog"
    GetParameter "getParameter"
    GetShardMap "getShardMap"
    GetShardVersion "getShardVersion"
    GrantRole "grantRole"
    GrantPrivilegesToRole "grantPrivilegesToRole"
    GrantRolesToRole "grantRolesToRole"
    GrantRolesToUser "grantRolesToUser"
    HostInfo "hostInfo"
    Impersonate "impersonate"
    ImportCollection "importCollection"
    IndexStats "indexStats"
    Inprog "inprog"
    Insert "insert"
    Internal "internal"
    InvalidateUserCache "invalidateUserCache"
    KillAnyCursor "killAnyCursor"
    KillAnySession "killAnySession"
    KillCursors "killCursors"
    Killop "killop"
    ListCachedAndActiveUsers "listCachedAndActiveUsers"
    ListCollections "listCollections"
    ListCursors "listCursors"
    ListDatabases "listDatabases"
    ListIndexes "listIndexes"
    ListSessions "listSessions"
    ListShards "listShards"
    LogRotate "logRotate"
    MoveChunk "moveChunk"
    Netstat "netstat"
    OidReset "oidReset"
    OperationMetrics "operationMetrics"
    PlanCacheIndexFilter "planCacheIndexFilter"
    PlanCacheRead "planCacheRead"
    PlanCacheWrite "planCacheWrite"
    RefineCollectionShardKey "refineCollectionShardKey"
    ReIndex "reIndex"
    Remove "remove"
    RemoveShard "removeShard"
    RenameCollection "renameCollection"
    RenameCollectionSameDb "renameCollectionSameDB"
    RepairDatabase "repairDatabase"
    ReplSetConfigure "replSetConfigure"
    ReplSetGetConfig "replSetGetConfig"
    ReplSetGetStatus "replSetGetStatus"
    ReplSetHeartbeat "replSetHeartbeat"
    ReplSetReconfig "replSetReconfig"
    ReplSetResizeOplog "replSetResizeOplog"
    ReplSetStateChange "replSetStateChange"
    ReshardCollection "reshardCollection"
    Resync "resync"
    RevokeRole "revokeRole"
    RevokePrivilegesFromRole "revokePrivilegesFromRole"
    RevokeRolesFromRole "revokeRolesFromRole"
    RevokeRolesFromUser "revokeRolesFromUser"
    RotateCertificates "rotateCertificates"
    RunAsLessPrivilegedUser "runAsLessPrivilegedUser"
    RunTenantMigration "runTenantMigration"
    ServerStatus "serverStatus"
    SetAuthenticationRestriction "setAuthenticationRestriction"
    SetClusterParameter "setClusterParameter"
    SetDefaultRwConcern "setDefaultRWConcern"
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion"
    SetFreeMonitoring "setFreeMonitoring"
    SetParameter "setParameter"
    SetUserWriteBlockMode "setUserWriteBlockMode"
    ShardCollection "shardCollection"
    ShardedDataDistribution "shardedDataDistribution"
    ShardingState "shardingState"
    Shutdown "shutdown"
    SplitChunk "splitChunk"
    SplitVector "splitVector"
    StorageDetails "storageDetails"
    Top "top"
    Touch "touch"
    TrafficRecord "trafficRecord"
    Unlock "unlock"
    UseTenant "useTenant"
    UseUuid "useUUID"
    Update "update"
    UpdateRole "updateRole"
    UpdateUser "updateUser"
    Validate "validate"
    ViewRole "viewRole"
    ViewUser "viewUser"
    ApplyOps "applyOps"
}

const WORDS: usize = Action::ALL.len().div_ceil(64);

/// A set of actions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ActionSet([u64; WORDS]);

impl ActionSet {
    pub const EMPTY: ActionSet = ActionSet([0; WORDS]);
    /// Each action, as `anyAction` grants it.
    pub const ANY: ActionSet = ActionSet::of(Action::ALL);

    /// Creates a set. `anyAction` stands for each action.
    pub const fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::EMPTY;
        let mut at = 0;
        while at < actions.len() {
            set = set.with(actions[at]);
            at += 1;
        }
        set
    }

    const fn with(mut self, action: Action) -> ActionSet {
        if matches!(action, Action::AnyAction) {
            let mut word = 0;
            while word < WORDS {
                let bits = Action::ALL.len() - word * 64;
                self.0[word] = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                word += 1;
            }
            return self;
        }
        let bit = action as usize;
        self.0[bit / 64] |= 1 << (bit % 64);
        self
    }

    pub const fn contains(&self, action: Action) -> bool {
        let bit = action as usize;
        self.0[bit / 64] & 1 << (bit % 64) != 0
    }

    /// Returns whether the set has each action of another.
    pub const fn contains_all(&self, other: &ActionSet) -> bool {
        let mut word = 0;
        while word < WORDS {
            if other.0[word] & !self.0[word] != 0 {
                return false;
            }
            word += 1;
        }
        true
    }

    pub const fn is_empty(&self) -> bool {
        let mut word = 0;
        while word < WORDS {
            if self.0[word] != 0 {
                return false;
            }
            word += 1;
        }
        true
    }

    pub const fn union(mut self, other: ActionSet) -> ActionSet {
        let mut word = 0;
        while word < WORDS {
            self.0[word] |= other.0[word];
            word += 1;
        }
        self
    }

    /// Returns the set without the actions of another. The rest of `anyAction` lists each action.
    pub const fn without(mut self, other: &ActionSet) -> ActionSet {
        let mut word = 0;
        while word < WORDS {
            self.0[word] &= !other.0[word];
            word += 1;
        }
        self
    }

    /// Returns the actions in MongoDB's order; `anyAction` alone if the set has it.
    pub fn iter(&self) -> impl Iterator<Item = Action> + '_ {
        let any = self.contains(Action::AnyAction);
        let listed = move |action: &Action| self.contains(*action) && (!any || *action == Action::AnyAction);
        Action::ALL.iter().copied().filter(listed)
    }
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> ActionSet {
        actions.into_iter().fold(ActionSet::EMPTY, ActionSet::with)
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Action::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        assert!(Action::ALL.iter().all(|action| Action::parse(action.name()) == Some(*action)));
        assert_eq!(Action::parse("Find"), None);
    }

    #[test]
    fn any_action_contains_each() {
        let any = ActionSet::of(&[Action::Find, Action::AnyAction]);
        assert_eq!(any, ActionSet::ANY);
        assert!(Action::ALL.iter().all(|action| any.contains(*action)));
        assert_eq!(any.iter().collect::<Vec<_>>(), [Action::AnyAction]);
    }

    #[test]
    fn sets_compare() {
        let (one, both) = (ActionSet::of(&[Action::Find]), ActionSet::of(&[Action::Update, Action::Find]));
        assert!(both.contains_all(&one) && !one.contains_all(&both) && both.contains_all(&ActionSet::EMPTY));
        assert_eq!(both.iter().map(Action::name).collect::<Vec<_>>(), ["find", "update"]);
        assert_eq!(both.without(&one), ActionSet::of(&[Action::Update]));
    }
}

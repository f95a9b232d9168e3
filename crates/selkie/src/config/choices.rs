//! Settings that have one of several named values.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    Router,
    ReplicaSet,
    Standalone,
}

/// The account of MariaDB that executes statements on documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendIdentity {
    Gateway,
    User,
}

/// The protocol of a listener, which determines its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// MongoDB clients.
    MongoDb,
    /// SQL clients, in MariaDB's protocol.
    MariaDb,
}

/// What a write invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// The entries that it affects.
    Precise,
    /// All entries of its collection.
    Collection,
}

/// Whether a SELECT is checked for expressions that make its result depend on more than rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selects {
    Verify,
    AssumeCacheable,
}

/// How writes that other programs make in MariaDB are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalWrites {
    Follow,
    Strict,
    None,
}

/// The kinds of replies that are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    Off,
    /// Result sets of MariaDB.
    Results,
    /// Replies to MongoDB clients.
    Documents,
    Both,
}

impl CacheMode {
    pub fn caches_replies(self) -> bool {
        matches!(self, CacheMode::Documents | CacheMode::Both)
    }

    pub fn caches_results(self) -> bool {
        matches!(self, CacheMode::Results | CacheMode::Both)
    }

    /// Returns whether this mode caches everything that another mode does.
    pub fn includes(self, other: CacheMode) -> bool {
        (self.caches_replies() || !other.caches_replies()) && (self.caches_results() || !other.caches_results())
    }

    pub fn name(self) -> &'static str {
        match self {
            CacheMode::Off => "off",
            CacheMode::Results => "results",
            CacheMode::Documents => "documents",
            CacheMode::Both => "both",
        }
    }
}

/// The router of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouterKind {
    #[default]
    Connections,
    ReadWriteSplit,
}

/// The kind of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKindName {
    Firewall,
    QueryLog,
    Rewrite,
    Limits,
    Masking,
    Mirror,
}

impl FilterKindName {
    pub const ALL: [FilterKindName; 6] = [
        FilterKindName::Firewall,
        FilterKindName::QueryLog,
        FilterKindName::Rewrite,
        FilterKindName::Limits,
        FilterKindName::Masking,
        FilterKindName::Mirror,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FilterKindName::Firewall => "firewall",
            FilterKindName::QueryLog => "query-log",
            FilterKindName::Rewrite => "rewrite",
            FilterKindName::Limits => "limits",
            FilterKindName::Masking => "masking",
            FilterKindName::Mirror => "mirror",
        }
    }
}

/// The reply to a statement whose result set exceeds a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenExceeded {
    #[default]
    Error,
    Empty,
}

/// The handling of statements beyond the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenTooFast {
    #[default]
    Wait,
    Refuse,
}

/// What a filter does with a statement that breaks its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterMode {
    #[default]
    Enforce,
    Report,
    Learn,
}

//! The types of a parsed pipeline.

use crate::add_fields::AddFields;
use crate::bucket_auto::BucketAuto;
use crate::densify::Densify;
use crate::geo_near::GeoNear;
use crate::group::Group;
use crate::joins::CrossCollectionStage;
use crate::redact::Redact;
use crate::reshape::{Project, ReplaceRoot};
use crate::sample::Sample;
use crate::unpack_bucket::UnpackBucket;
use crate::unwind::Unwind;
use crate::window::SetWindowFields;
use query::metadata::{Meta, Needs};
use query::{Predicate, ReadFields, Sort};
use std::sync::Arc;

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(crate) stages: Vec<Stage>,
    /// The metadata that its stages read.
    pub(crate) needs: Needs,
    /// The only fields of input documents that its stages read; `None` if they may read any.
    pub(crate) fields: Option<ReadFields>,
}

/// One stage. Cheap to clone: runs share the parsed parts.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Match(Arc<Predicate>),
    /// Ends after `limit` documents, if a `$limit` follows.
    Sort {
        sort: Sort,
        limit: Option<u64>,
    },
    Limit(u64),
    Skip(u64),
    AddFields(Arc<AddFields>),
    Project(Arc<Project>),
    ReplaceRoot(Arc<ReplaceRoot>),
    Unwind(Arc<Unwind>),
    UnpackBucket(Arc<UnpackBucket>),
    Group(Arc<Group>),
    Count(Arc<str>),
    BucketAuto(Arc<BucketAuto>),
    Sample(Sample),
    Redact(Arc<Redact>),
    Densify(Arc<Densify>),
    SetWindowFields(Arc<SetWindowFields>),
    Facet(Facets),
    CrossCollection(Arc<CrossCollectionStage>),
    /// Allowed only as the first stage.
    GeoNear(Arc<GeoNear>),
}

/// The front of a pipeline that a store can execute; the rest of the pipeline no longer contains
/// it.
#[derive(Clone, Debug)]
pub struct PipelineSource {
    /// The leading `$match` stages.
    pub predicate: Predicate,
    /// A `$sort` directly after them.
    pub sort: Option<Sort>,
    /// Maximal number of documents that the pipeline uses, if a `$limit` directly after says so.
    pub limit: Option<u64>,
    /// The metadata of the documents that the pipeline reads.
    pub needs: Needs,
    /// The only fields that the pipeline and this source read; `None` if they may read any.
    pub fields: Option<ReadFields>,
}

/// The pipelines of a `$facet`, by name.
pub type Facets = Arc<Vec<(Box<str>, Pipeline)>>;

impl Stage {
    /// Returns whether it computes one document from one.
    pub fn is_one_to_one(&self) -> bool {
        matches!(self, Stage::AddFields(_) | Stage::Project(_) | Stage::ReplaceRoot(_))
    }
}

/// Makes the stages that produce metadata record the requested ones.
pub(crate) fn record_metadata(stages: &mut [Stage], needs: Needs) {
    for stage in stages {
        match stage {
            Stage::Sort { sort, .. } if needs.contains(Meta::SortKey) => sort.record_keys(),
            Stage::Sample(sample) => sample.records_rand_val |= needs.contains(Meta::RandVal),
            _ => {}
        }
    }
}

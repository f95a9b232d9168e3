//! The kinds of operations that are counted.

macro_rules! kinds {
    ($($kind:ident $name:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OperationKind { $($kind),* }

        impl OperationKind {
            pub const ALL: &[OperationKind] = &[$(OperationKind::$kind),*];

            pub fn name(self) -> &'static str {
                match self { $(OperationKind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    FindId "find by _id",
    FindOwn "find by _id, own write",
    FindIds "find by _id $in",
    FindGroup "find by equality",
    FindRange "find by two conditions or a range",
    FindSorted "find with sort and limit",
    FindProjected "find with projection",
    FindBatches "find in batches",
    GetMore "getMore",
    FindMoved "reads of renamed collections",
    Count "count",
    Distinct "distinct",
    Group "$match and $group",
    Lookup "$lookup",
    Update "update by _id",
    UpdateMany "update of many",
    Bulk "update in bulk",
    Upsert "upsert",
    Insert "insert",
    Delete "delete",
    FindAndModify "findAndModify",
    Index "create or drop an index",
    CollMod "collMod",
    Move "rename, drop",
    Sql "write by SQL",
}

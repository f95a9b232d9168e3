//! The field of a `$geoNear` that names none: that of the collection's only geo index.

use aggregate::Pipeline;
use error::{Code, Error, Result};
use store::{DocumentStore, FieldKind, Namespace};

/// Sets the field. Fails with 26 or 27 if there is no such index, or several.
pub async fn resolve_key(store: &dyn DocumentStore, namespace: &Namespace, pipeline: &mut Pipeline) -> Result<()> {
    if !pipeline.lacks_geo_field() {
        return Ok(());
    }
    let Some(indexes) = store.cached_indexes(namespace).await? else {
        let message = format!("$geoNear requires a geo index to run, but {namespace} does not exist");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    };
    for (kind, name) in [(FieldKind::Plane, "2d"), (FieldKind::Sphere, "2dsphere")] {
        let place = |index: &store::IndexSpec| {
            let mut fields = index.key.as_doc().iter();
            fields.find(|(path, value)| FieldKind::of(path, *value) == kind).map(|(path, _)| path.to_owned())
        };
        let mut places = indexes.iter().filter_map(place);
        match (places.next(), places.next()) {
            (Some(_), Some(_)) => {
                let message =
                    format!("There is more than one {name} index on {namespace}; unsure which to use for $geoNear");
                return Err(Error::new(Code::INDEX_NOT_FOUND, message));
            }
            (Some(path), None) => {
                pipeline.set_geo_field(&path);
                return Ok(());
            }
            _ => {}
        }
    }
    let message = "$geoNear requires a 2d or 2dsphere index, but none were found";
    Err(Error::new(Code::INDEX_NOT_FOUND, message))
}

//! Regions: the operands of `$geoWithin` and `$geoIntersects`.

use super::flat::PlanarArea;
use super::parse::{stored_position, stored_shape};
use super::sphere::{Cap, IntersectionTarget, SphericalArea};
use document::Value;

/// The operand that a document's value is compared with.
#[derive(Clone, Debug)]
pub enum Region {
    /// `$geoWithin` on the plane, which matches points only.
    Flat(PlanarArea),
    /// `$centerSphere`.
    Cap(Cap),
    /// `$geoWithin: {$geometry: …}`
    Within(Box<SphericalArea>),
    /// `$geoIntersects`
    Intersects(Box<IntersectionTarget>),
}

impl Region {
    /// Returns whether the condition holds for a value. It does not hold for values that are no
    /// shape.
    pub fn holds_for(&self, value: Value<'_>) -> bool {
        match self {
            Region::Flat(area) => stored_position(value).is_some_and(|position| area.contains(position)),
            Region::Cap(cap) => stored_shape(value).is_some_and(|shape| cap.contains(&shape)),
            Region::Within(area) => stored_shape(value).is_some_and(|shape| area.contains(&shape)),
            Region::Intersects(target) => stored_shape(value).is_some_and(|shape| target.meets_shape(&shape)),
        }
    }
}

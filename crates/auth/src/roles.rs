//! Inheritance: everything that a list of roles grants.

use crate::builtin_roles;
use crate::name::RoleName;
use crate::privilege::{self, Privilege};
use crate::restrictions::Restrictions;
use crate::role::Role;

/// The privileges of roles, with those of all roles that they inherit from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The roles themselves, then those that they inherit from, each once.
    pub roles: Vec<RoleName>,
    /// Each pattern once.
    pub privileges: Vec<Privilege>,
    /// Those of the roles; each of them must admit a connection.
    pub restrictions: Vec<Restrictions>,
}

/// Follows the inheritance of roles. Roles that do not exist grant nothing, and a cycle ends where
/// it closes. `find` returns a role that a user defined.
pub fn resolve(names: &[RoleName], mut find: impl FnMut(&RoleName) -> Option<Role>) -> Resolved {
    let mut resolved = Resolved::default();
    let mut pending: Vec<RoleName> = Vec::new();
    let push = |names: &[RoleName], pending: &mut Vec<RoleName>| {
        for name in names {
            if !pending.contains(name) {
                pending.push(name.clone());
            }
        }
    };
    push(names, &mut pending);
    let mut at = 0;
    while let Some(name) = pending.get(at).cloned() {
        at += 1;
        if let Some(privileges) = builtin_roles::privileges(&name) {
            privileges.into_iter().for_each(|one| privilege::add(&mut resolved.privileges, one));
        } else if let Some(role) = find(&name) {
            role.privileges.into_iter().for_each(|one| privilege::add(&mut resolved.privileges, one));
            if !role.restrictions.is_empty() {
                resolved.restrictions.push(role.restrictions);
            }
            push(&role.roles, &mut pending);
        } else {
            continue;
        }
        resolved.roles.push(name);
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, ActionSet};
    use crate::resource::ResourcePattern;

    fn role(name: &str, action: Action, roles: &[RoleName]) -> Role {
        let privilege = Privilege::new(ResourcePattern::database("d"), ActionSet::of(&[action]));
        let restrictions = Restrictions::default();
        Role { name: RoleName::new(name, "d"), privileges: vec![privilege], roles: roles.to_vec(), restrictions }
    }

    #[test]
    fn cycles_end() {
        let (one, two) = (RoleName::new("one", "d"), RoleName::new("two", "d"));
        let roles = [
            role("one", Action::Find, std::slice::from_ref(&two)),
            role("two", Action::Insert, &[one.clone(), RoleName::new("lost", "d"), RoleName::new("read", "e")]),
        ];
        let find = |name: &RoleName| roles.iter().find(|role| role.name == *name).cloned();
        let resolved = resolve(std::slice::from_ref(&one), find);
        assert_eq!(resolved.roles, [one, two, RoleName::new("read", "e")]);
        let on_d = resolved.privileges.iter().find(|own| own.pattern == ResourcePattern::database("d"));
        assert_eq!(on_d.map(|own| own.actions), Some(ActionSet::of(&[Action::Find, Action::Insert])));
    }
}

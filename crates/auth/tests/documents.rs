//! Users and roles survive the way to `system.users` and back, in MongoDB's order of fields.

use auth::{Action, ActionSet, Privilege, ResourcePattern, Role, RoleName, User};
use document::{Value, array, doc};

#[test]
fn users_are_stored_as_by_mongodb() {
    let stored = doc! {
        "_id": "admin.u",
        "userId": Value::Binary { subtype: 4, bytes: &[7; 16] },
        "user": "u",
        "db": "admin",
        "credentials": doc! {
            "SCRAM-SHA-256": doc! {
                "iterationCount": 15000, "salt": "nmlOLw==", "storedKey": "GENN6g==", "serverKey": "4qi7OQ==",
            }.as_doc(),
        }.as_doc(),
        "authenticationRestrictions": array![doc! {
            "clientSource": array!["127.0.0.1", "10.0.0.0/8"].as_value(),
            "serverAddress": array!["::1"].as_value(),
        }.as_doc()].as_value(),
        "customData": doc! { "a": 1 }.as_doc(),
        "roles": array![doc! { "role": "read", "db": "x" }.as_doc()].as_value(),
    };
    let user = User::from_document(stored.as_doc()).expect("a well-formed user");
    assert_eq!(user.to_document(), stored);
    assert_eq!(user.roles, [RoleName::new("read", "x")]);
    assert!(!format!("{user:?}").contains("GENN6g"));
}

#[test]
fn roles_are_stored_as_by_mongodb() {
    let stored = doc! {
        "_id": "d.r",
        "role": "r",
        "db": "d",
        "privileges": array![
            doc! { "resource": doc! { "cluster": true }.as_doc(), "actions": array!["inprog"].as_value() }.as_doc(),
            doc! {
                "resource": doc! { "system_buckets": "x", "db": "k" }.as_doc(),
                "actions": array!["find", "update"].as_value(),
            }.as_doc(),
        ].as_value(),
        "roles": array![doc! { "role": "read", "db": "d" }.as_doc()].as_value(),
    };
    let role = Role::from_document(stored.as_doc()).expect("a well-formed role");
    assert_eq!(role.to_document(), stored);
    let cluster = Privilege::new(ResourcePattern::Cluster, ActionSet::of(&[Action::Inprog]));
    assert_eq!(role.privileges.first(), Some(&cluster));
}

#[test]
fn malformed_documents_are_refused() {
    for document in [doc! {}, doc! { "user": "u", "db": 1 }, doc! { "user": "u", "db": "d", "credentials": 1 }] {
        let error = User::from_document(document.as_doc()).expect_err("it is malformed");
        assert_eq!(error.code().0, 12);
        assert!(Role::from_document(document.as_doc()).is_err());
    }
}

//! Sessions get servers.

use super::*;
use crate::reachability::Reached;
use crate::role::{Role, Standing, WantedRole};

struct Cluster {
    backends: Vec<Arc<Backend>>,
    service: Arc<Service>,
}

fn server(name: &str, connections_max: Option<usize>) -> ServerSettings {
    let (name, host) = (name.to_owned(), "h".to_owned());
    ServerSettings { name, host, port: 1, tls: Default::default(), weight: 1, connections_max, tags: Vec::new() }
}

fn settings(role: WantedRole) -> ServiceSettings {
    ServiceSettings {
        name: "app".into(),
        servers: Vec::new(),
        role,
        account: None,
        connections_per_user: None,
        router: Default::default(),
        filters: Vec::new(),
    }
}

fn cluster(roles: &[Role], connections_max: Option<usize>, role: WantedRole) -> Cluster {
    let names = ["one", "two", "three"].iter().zip(roles);
    let backend = |(name, role): (&&str, &Role)| {
        let backend = Backend::new(server(name, connections_max));
        set_role(&backend, *role);
        backend
    };
    let backends: Vec<Arc<Backend>> = names.map(backend).collect();
    let service = Service::new(settings(role), backends.clone(), Arc::default());
    Cluster { backends, service }
}

fn set_role(backend: &Backend, role: Role) {
    backend.change(|condition| {
        condition.is_monitored = true;
        condition.reached = Reached::Up;
        condition.standing = Standing { role, reason: if role == Role::None { "it is odd" } else { "" } };
    });
}

const PATIENCE: Duration = Duration::from_millis(50);

/// Connects a session. Servers in `refusing` refuse it.
async fn connect(service: &Service, refusing: &[&str]) -> Result<Lease, String> {
    let open = |candidate: Candidate| async move {
        match refusing.contains(&candidate.server.name.as_str()) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(((), 0)),
        }
    };
    service
        .connect(PATIENCE, std::future::ready(Some(())), open)
        .await
        .map(|(lease, (), ())| lease)
        .map_err(|error| error.to_string())
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn sessions_go_to_the_server_with_the_fewest_and_to_another_if_it_fails() {
    run(async {
        let cluster = cluster(&[Role::Primary, Role::Replica, Role::Replica], None, WantedRole::Replica);
        let mut leases = Vec::new();
        for expected in ["two", "three", "two"] {
            let lease = connect(&cluster.service, &[]).await.unwrap();
            assert_eq!(lease.server.name, expected);
            leases.push(lease);
        }
        assert_eq!(connect(&cluster.service, &["three"]).await.unwrap().server.name, "two");
        assert_eq!(connect(&cluster.service, &["two", "three"]).await.unwrap().server.name, "one");
        let error = connect(&cluster.service, &["one", "two", "three"]).await.unwrap_err();
        assert!(error.contains("refused"), "{error}");
        drop(leases);
        assert!(cluster.backends.iter().all(|backend| backend.slots.used() == 0));
    });
}

#[test]
fn a_service_without_a_server_says_why() {
    run(async {
        let cluster = cluster(&[Role::None, Role::Replica], None, WantedRole::Primary);
        let error = connect(&cluster.service, &[]).await.unwrap_err();
        assert_eq!(error, "service app has no primary (one: it is odd, two: it is a replica)");
    });
}

#[test]
fn a_full_server_lets_sessions_wait() {
    run(async {
        let cluster = cluster(&[Role::Primary], Some(1), WantedRole::Primary);
        let first = connect(&cluster.service, &[]).await.unwrap();
        let error = connect(&cluster.service, &[]).await.unwrap_err();
        assert_eq!(error, "service app has no server with a free connection");
        let leave = async {
            tokio::time::sleep(PATIENCE / 5).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(connect(&cluster.service, &[]), leave);
        assert_eq!(second.unwrap().server.name, "one");
    });
}

/// Connects a session. The servers give the ids that `next` returns, one for each connection.
async fn connect_as(service: &Service, next: impl Fn() -> u64) -> Lease {
    let open = |_| std::future::ready(Ok(((), next())));
    service.connect(PATIENCE, std::future::ready(Some(())), open).await.map(|(lease, (), ())| lease).unwrap()
}

#[test]
fn no_two_sessions_have_one_id() {
    run(async {
        let cluster = cluster(&[Role::Replica, Role::Replica], None, WantedRole::Replica);
        let first = connect_as(&cluster.service, || 1).await;
        let next = std::cell::Cell::new(0);
        let second = connect_as(&cluster.service, || next.replace(next.get() + 1) / 2 + 1).await;
        assert_eq!((first.id(), second.id()), (Some(1), Some(2)));
        assert_ne!(first.server.name, second.server.name);
        let own = connect_as(&cluster.service, || 1).await;
        assert!(own.id() >= Some(1 << 30));
        drop(first);
        assert_eq!(connect_as(&cluster.service, || 1).await.id(), Some(1));
    });
}

#[test]
fn a_lease_ends_with_the_role_and_with_the_configuration() {
    use crate::router::connections::SessionEnd::{Now, WhenIdle};
    run(async {
        let Cluster { backends, service } = cluster(&[Role::Primary, Role::Replica], None, WantedRole::Primary);
        let mut assignment = connect(&service, &[]).await.unwrap().assignment;
        assert_eq!(assignment.end(), None);
        service.change(settings(WantedRole::Primary), vec![backends[1].clone()], Vec::new(), None);
        assignment.changed().await;
        assert_eq!(assignment.end(), Some(WhenIdle("the service no longer uses it")));
        set_role(&backends[0], Role::Replica);
        assignment.changed().await;
        assert_eq!(assignment.end(), Some(Now("it is no longer the primary")));
    });
}

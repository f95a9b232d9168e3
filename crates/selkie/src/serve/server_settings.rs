//! The settings of the MongoDB server, and how `getCmdLineOpts` shows the configuration.

use crate::cli::presentable_arguments;
use crate::config::{Config, Protocol, Store, Tls};
use crate::temporary_files::TemporaryFiles;
use document::{DocBuf, doc};
use selkie_runtime::ListenAddress;
use server::tls::TlsListeners;
use server::{Settings, Topology};
use service::{Registry, Service};
use std::path::Path;
use std::sync::Arc;
use tls::{ClientCertificates, MinVersion};

pub fn settings(config: &Config, tls: Option<TlsListeners>, sql_servers: Arc<Registry>) -> Settings {
    Settings {
        topology: config.topology.clone(),
        cursor_timeout: config.cursor_timeout,
        cursor_limits: config.limits.cursors,
        connections_max: config.limits.connections.total,
        slow_ms: config.slow_ms,
        slow_log: config.slow_log,
        argv: presentable_arguments(),
        parsed: parsed(config),
        compressors: config.compressors.iter().map(|compressor| compressor.name().to_owned()).collect(),
        workers: config.threads,
        access_control: config.auth,
        login_mechanisms: config.login_mechanisms.clone(),
        tls,
        store_service: store_service(config, &sql_servers),
        sql_servers,
        test_commands: config.test_commands,
        disk: Some(Arc::new(TemporaryFiles::beside(&config.store))),
    }
}

/// Returns the service whose servers store the documents, if one does.
pub fn store_service(config: &Config, servers: &Registry) -> Option<Arc<Service>> {
    let Store::Service(store) = &config.store else { return None };
    servers.service(&store.name).filter(|_| config.stores_documents())
}

/// Returns the configuration in the form of `getCmdLineOpts`.
fn parsed(config: &Config) -> DocBuf {
    let mut net = DocBuf::new();
    let tcp: Vec<_> = config
        .addresses(Protocol::MongoDb)
        .filter_map(|address| match address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        })
        .collect();
    let hosts: Vec<String> = tcp.iter().map(|address| address.ip().to_string()).collect();
    net.append("bindIp", hosts.join(",").as_str());
    if let Some(first) = tcp.first() {
        net.append("port", i32::from(first.port()));
    }
    if let Some(tls) = &config.tls {
        net.append("tls", &parsed_tls(tls));
    }
    let mut parsed = doc! { "net": &net };
    if let Store::Embedded(path) | Store::EmbeddedMariaDb(path) = &config.store {
        parsed.append("storage", &doc! { "dbPath": path.to_string_lossy().as_ref() });
    }
    if config.auth {
        parsed.append("security", &doc! { "authorization": "enabled" });
    }
    if let Topology::ReplicaSet { name, .. } = &config.topology {
        parsed.append("replication", &doc! { "replSet": name.as_str() });
    }
    if let Some(audit) = super::audit_log::parsed(config) {
        parsed.append("auditLog", &audit);
    }
    parsed
}

/// Returns the settings of TLS under the names of MongoDB.
fn parsed_tls(tls: &Tls) -> DocBuf {
    let mut parsed = DocBuf::new();
    let files = &tls.files;
    let mut append = |name: &str, path: &Path| parsed.append(name, path.to_string_lossy().as_ref());
    if let Some(ca) = &files.ca {
        append("CAFile", ca);
    }
    if let Some(crl) = &files.crl {
        append("CRLFile", crl);
    }
    append("certificateKeyFile", &files.certificate);
    if files.client_certificates == ClientCertificates::Optional {
        parsed.append("allowConnectionsWithoutCertificates", true);
    }
    if files.min_version == MinVersion::Tls13 {
        parsed.append("disabledProtocols", "TLS1_0,TLS1_1,TLS1_2");
    }
    parsed.append("mode", tls.mode.mongodb_name());
    parsed
}

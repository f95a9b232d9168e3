//! `buildInfo`: the MongoDB version that clients rely on, and Selkie's own.

use crate::call::Call;
use document::DocWriter;
use error::Result;

/// The MongoDB release whose behavior the server follows; clients and test harnesses choose their
/// expectations by it.
pub const MONGODB_VERSION: &str = "6.0.5";
pub const MONGODB_VERSION_PARTS: [i32; 4] = [6, 0, 5, 0];

/// Selkie's own version.
pub const SELKIE_VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn build_info(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("version", MONGODB_VERSION);
    reply.append("gitVersion", "unknown");
    drop(reply.array("modules"));
    reply.append("allocator", "mimalloc");
    reply.append("javascriptEngine", "none");
    reply.append("sysInfo", "deprecated");
    {
        let mut parts = reply.array("versionArray");
        MONGODB_VERSION_PARTS.into_iter().for_each(|part| parts.push(part));
    }
    // MongoDB reports its TLS library here; there is no TLS yet.
    {
        let mut library = reply.document("openssl");
        library.append("running", "none");
        library.append("compiled", "none");
    }
    {
        let mut environment = reply.document("buildEnvironment");
        environment.append("target_arch", std::env::consts::ARCH);
        environment.append("target_os", std::env::consts::OS);
    }
    reply.append("bits", usize::BITS as i32);
    reply.append("debug", cfg!(debug_assertions));
    reply.append("maxBsonObjectSize", document::DOCUMENT_BYTES_MAX as i32);
    {
        let mut engines = reply.array("storageEngines");
        engines.push("selkie");
    }
    let mut selkie = reply.document("selkie");
    selkie.append("version", SELKIE_VERSION);
    selkie.append("store", &call.worker.server.engine.describe());
    Ok(())
}

/// Appends the server's name and version, for the end of `explain`.
pub fn write_server_info(writer: &mut DocWriter<'_>) {
    writer.append("host", server::host::cached_name());
    writer.append("version", MONGODB_VERSION);
    writer.append("selkie", SELKIE_VERSION);
}

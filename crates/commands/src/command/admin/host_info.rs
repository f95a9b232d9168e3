//! `hostInfo`: the machine and its operating system.

use crate::call::Call;
use document::{DocWriter, Value};
use error::Result;
use server::host;

pub fn host_info(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let memory_mib = (host::memory_bytes() / (1024 * 1024)) as i64;
    let processors = host::processors();
    {
        let mut system = reply.document("system");
        system.append("currentTime", Value::DateTime(server::clock::now_ms()));
        system.append("hostname", &host::name());
        system.append("cpuAddrSize", usize::BITS as i32);
        system.append("memSizeMB", memory_mib);
        system.append("memLimitMB", memory_mib);
        system.append("numCores", processors);
        system.append("cpuArch", std::env::consts::ARCH);
        system.append("numaEnabled", false);
    }
    {
        let mut os = reply.document("os");
        os.append("type", "Linux");
        os.append("name", &host::distribution());
        os.append("version", &format!("Kernel {}", host::kernel_version()));
    }
    let (features, megahertz) = host::processor_facts();
    // Nested twice, as in MongoDB on Linux.
    let mut outer = reply.document("extra");
    let mut extra = outer.document("extra");
    extra.append("versionString", &host::version_line());
    extra.append("kernelVersion", &host::kernel_version());
    extra.append("cpuFrequencyMHz", &megahertz);
    extra.append("cpuFeatures", &features);
    let page_bytes = rustix::param::page_size();
    extra.append("pageSize", page_bytes as i32);
    extra.append("numPages", (host::memory_bytes() / page_bytes as u64) as i64);
    extra.append("maxOpenFiles", host::open_files_max() as i64);
    Ok(())
}

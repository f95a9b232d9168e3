//! What the operating system reports about itself and about this process.

use std::fs;
use std::sync::LazyLock;

/// Returns the machine's name.
pub fn name() -> String {
    String::from_utf8_lossy(rustix::system::uname().nodename().to_bytes()).into_owned()
}

/// Returns the machine's name, read once; statistics and errors identify the server by it.
pub fn cached_name() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(name);
    &NAME
}

/// Returns the kernel release (`uname -r`).
pub fn kernel_version() -> String {
    String::from_utf8_lossy(rustix::system::uname().release().to_bytes()).into_owned()
}

/// Returns the line of `/proc/version`.
pub fn version_line() -> String {
    fs::read_to_string("/proc/version").unwrap_or_default().trim_end().to_owned()
}

/// Returns the distribution, as `/etc/os-release` names it.
pub fn distribution() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("Linux").trim_matches('"').to_owned()
}

/// Returns the machine's memory in bytes.
pub fn memory_bytes() -> u64 {
    proc_value("/proc/meminfo", "MemTotal:").unwrap_or(0) * 1024
}

/// Returns the smallest memory limit, in bytes, of the process's control group (version 2) and
/// those above it.
pub fn control_group_memory_max() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let group = std::path::Path::new("/sys/fs/cgroup").join(path);
    let above = group.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup"));
    // A group without a limit says `max`.
    above.filter_map(|folder| fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()).min()
}

/// Returns the limit of the address space in bytes (`ulimit -v`).
pub fn address_space_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

/// Returns the number of logical processors.
pub fn processors() -> i32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as i32)
}

/// Returns the features and the clock of the first processor, from `/proc/cpuinfo`.
pub fn processor_facts() -> (String, String) {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        info.lines()
            .find(|line| line.starts_with(key))
            .and_then(|line| line.split_once(':'))
            .map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    (value("flags"), value("cpu MHz"))
}

/// Returns this process's resident and virtual memory in bytes.
pub fn process_memory_bytes() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = |key| line_value(&status, key).unwrap_or(0) * 1024;
    (kibibytes("VmRSS:"), kibibytes("VmSize:"))
}

/// Returns the time spent in user and in kernel mode, in microseconds.
pub fn process_cpu_micros() -> (i64, i64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields behind the name, which is in parentheses and may hold blanks; ticks are hundredths
    // of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<i64>().ok()).unwrap_or(0) * 10_000;
    (ticks(11), ticks(12))
}

/// Returns the voluntary and involuntary context switches of the process's first thread.
pub fn context_switches() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |key| line_value(&status, key).unwrap_or(0);
    (value("voluntary_ctxt_switches:"), value("nonvoluntary_ctxt_switches:"))
}

/// Returns the major and minor page faults, and the largest resident memory in KiB.
pub fn page_faults() -> (i64, i64, i64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let count = |index: usize| fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0);
    let most = proc_value("/proc/self/status", "VmHWM:").unwrap_or(0);
    (count(9), count(7), i64::try_from(most).unwrap_or(i64::MAX))
}

/// Returns the used and the total bytes of the file system that holds a folder.
pub fn file_system_bytes(folder: &str) -> Option<(u64, u64)> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    let used = stat.f_blocks.saturating_sub(stat.f_bavail);
    Some((used.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize)))
}

/// Returns the limit of open files.
pub fn open_files_max() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn proc_value(path: &str, key: &str) -> Option<u64> {
    line_value(&fs::read_to_string(path).ok()?, key)
}

fn line_value(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

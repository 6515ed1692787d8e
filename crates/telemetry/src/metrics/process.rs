//! What the operating system says of this process.

use std::fs;

/// Resources in use now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) resident_bytes: u64,
    pub(crate) open_files: u64,
    /// In hundredths of a second, the unit of Linux's `USER_HZ`.
    pub(crate) cpu_ticks: u64,
}

impl Resources {
    /// Reads them; `None` where the system has no `/proc`.
    pub(crate) fn read() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        Some(Self {
            resident_bytes: resident_bytes(&status)?,
            // The folder itself is open while it is counted.
            open_files: open_files.saturating_sub(1),
            cpu_ticks: cpu_ticks(&stat)?,
        })
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

/// User and system time: the 14th and 15th field, counted behind the name, which may hold spaces and brackets.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::{cpu_ticks, resident_bytes};

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t  1234 kB\nThreads:\t2\n"), Some(1_263_616));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "77 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks("77 (a) S 1"), None);
    }
}

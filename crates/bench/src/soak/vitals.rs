//! What a process holds at one moment, as the operating system sees it.

use std::{fmt, fs, io};

use crate::gateway::targets::Target;
use crate::memory::resident_of;

/// What grows when something leaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vitals {
    /// Bytes of memory.
    pub(crate) resident: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    sockets: u64,
}

impl Vitals {
    pub(crate) fn of(target: &Target) -> io::Result<Self> {
        let pid = target.pid().ok_or_else(|| io::Error::other("the upstream is no process of its own"))?;
        let count = |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).map(Iterator::count);
        // A descriptor may be gone by the time it is looked at.
        let links = fs::read_dir(format!("/proc/{pid}/fd"))?
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:")).count();
        Ok(Self {
            resident: resident_of(&pid.to_string())? as u64,
            threads: count("task")? as u64,
            descriptors: count("fd")? as u64,
            sockets: sockets as u64,
        })
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} MB, {} threads, {} descriptors ({} sockets)",
            self.resident / 1_000_000,
            self.threads,
            self.descriptors,
            self.sockets
        )
    }
}

/// How much something grows in a minute, of samples that are a second apart: the line with the least squares.
pub(crate) fn slope(seen: &[Vitals], of: impl Fn(&Vitals) -> f64) -> f64 {
    let count = seen.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = seen.iter().map(&of).sum::<f64>() / count.max(1.0);
    let offsets = || (0..seen.len()).map(|at| at as f64 - middle);
    let together: f64 = offsets().zip(seen).map(|(offset, vitals)| offset * (of(vitals) - mean)).sum();
    let squares: f64 = offsets().map(|offset| offset * offset).sum();
    if squares > 0.0 { together / squares * 60.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{Vitals, slope};

    fn seen(resident: impl Iterator<Item = u64>) -> Vec<Vitals> {
        resident.map(|resident| Vitals { resident, threads: 1, descriptors: 1, sockets: 0 }).collect()
    }

    #[test]
    fn what_grows_by_one_a_second_grows_by_sixty_a_minute() {
        let grows = slope(&seen(100..160), |vitals| vitals.resident as f64);
        assert!((grows - 60.0).abs() < 1e-6, "{grows}");
        let sways = slope(&seen((0..120).map(|at| 100 + at % 2)), |vitals| vitals.resident as f64);
        assert!(sways.abs() < 0.1, "{sways}");
        assert!(slope(&[], |vitals| vitals.resident as f64).abs() < 1e-9);
    }
}

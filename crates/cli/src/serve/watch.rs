//! Files whose change is noticed.

use std::path::PathBuf;
use std::time::SystemTime;

/// Files and how they looked last.
#[derive(Debug)]
pub(crate) struct Watched {
    files: Vec<(PathBuf, Option<Look>)>,
}

/// What tells two versions of a file apart: editors replace files, so the inode counts too.
type Look = (SystemTime, u64, u64);

impl Watched {
    /// Looks at the files for the first time.
    pub(crate) fn new(files: Vec<PathBuf>) -> Self {
        let looked = |file: PathBuf| {
            let look = look(&file);
            (file, look)
        };
        Self { files: files.into_iter().map(looked).collect() }
    }

    /// Whether one has changed since the last look. A file that is gone for a moment, while an editor writes it anew,
    /// has not changed until it is back.
    pub(crate) fn have_changed(&mut self) -> bool {
        let mut changed = false;
        for (file, before) in &mut self.files {
            let now = look(file);
            if now.is_some() && now != *before {
                *before = now;
                changed = true;
            }
        }
        changed
    }
}

fn look(file: &PathBuf) -> Option<Look> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::Watched;

    #[test]
    fn a_change_is_noticed_once_and_a_file_that_is_gone_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, "a").unwrap();
        let mut watched = Watched::new(vec![file.clone()]);
        assert!(!watched.have_changed());
        std::fs::write(&file, "ab").unwrap();
        assert!(watched.have_changed());
        assert!(!watched.have_changed());
        std::fs::remove_file(&file).unwrap();
        assert!(!watched.have_changed());
        std::fs::write(&file, "abc").unwrap();
        assert!(watched.have_changed());
    }
}

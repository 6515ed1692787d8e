//! The secret that ids are keyed with, so that they tell nothing about keys and texts, and survive a restart.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A key of 32 random bytes. Clones are the same secret, also when it becomes another.
#[derive(Clone)]
pub(crate) struct Secret(Arc<RwLock<[u8; 32]>>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// The secret of a data folder; made when there is none yet. Only its owner can read either.
    pub(crate) fn kept_in(folder: &Path) -> io::Result<Self> {
        Self::random()?.settled_in(folder)
    }

    /// The secret of a data folder, which becomes this one when there is none yet.
    pub(crate) fn settled_in(&self, folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join("secret");
        if let Some(kept) = read(&path)? {
            return Ok(kept);
        }
        // Written whole beside it and then put in place, so that nobody ever reads half a secret.
        let draft = folder.join(format!("secret.{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&self.bytes())?;
        file.sync_all()?;
        let placed = fs::hard_link(&draft, &path);
        fs::remove_file(&draft)?;
        match placed {
            Ok(()) => Ok(self.clone()),
            // Another process was faster: its secret is everyone's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&path)?.ok_or_else(|| {
                io::Error::other(format!("{} is not a secret of 32 bytes; delete it", path.display()))
            }),
            Err(error) => Err(error),
        }
    }

    /// A secret that lasts as long as this process.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self::of(bytes))
    }

    fn of(bytes: [u8; 32]) -> Self {
        Self(Arc::new(RwLock::new(bytes)))
    }

    /// The secret itself, for processes that share it.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the secret of others, so that ids are the same everywhere.
    pub(crate) fn adopt(&self, bytes: [u8; 32]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// The keyed hash of some fields, each with its length, in a domain of its own.
    pub(crate) fn hash(&self, domain: &str, fields: &[&[u8]]) -> u128 {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.bytes()) else { return 0 };
        for field in std::iter::once(&domain.as_bytes()).chain(fields) {
            mac.update(&(field.len() as u64).to_le_bytes());
            mac.update(field);
        }
        let tag = mac.finalize().into_bytes();
        u128::from_be_bytes(std::array::from_fn(|index| tag[index]))
    }
}

/// What others may do with a file.
const OF_OTHERS: u32 = 0o077;

/// Sees to it that only we can read a folder of ours, which may have been made by somebody else's rules. One that others
/// own is theirs to keep.
pub(crate) fn close_to_others(folder: &Path) -> io::Result<()> {
    let kept = fs::metadata(folder)?;
    if kept.mode() & OF_OTHERS == 0 {
        return Ok(());
    }
    // Where it is not told who we are, whoever may not change the folder is told so.
    if fs::metadata("/proc/self").is_ok_and(|us| us.uid() != kept.uid()) {
        return Err(io::Error::other("it belongs to another user"));
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn read(path: &Path) -> io::Result<Option<Secret>> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes.try_into().ok().map(Secret::of)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{Secret, close_to_others};

    #[test]
    fn a_secret_survives_a_restart_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("state");
        let first = Secret::kept_in(&data).unwrap();
        let second = Secret::kept_in(&data).unwrap();
        assert_eq!(first.hash("t", &[b"a"]), second.hash("t", &[b"a"]));
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(data.clone()), mode(data.join("secret"))), (0o700, 0o600));
    }

    #[test]
    fn a_folder_of_ours_that_others_can_read_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let mode = || std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777;
        for open in [0o755, 0o770, 0o700] {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(open)).unwrap();
            close_to_others(folder.path()).unwrap();
            assert_eq!(mode(), 0o700, "{open:o}");
        }
    }

    #[test]
    fn a_secret_that_was_made_before_its_folder_is_kept_there_unless_another_is() {
        let folder = tempfile::tempdir().unwrap();
        let first = Secret::random().unwrap();
        assert_eq!(first.settled_in(folder.path()).unwrap().bytes(), first.bytes());
        let second = Secret::random().unwrap();
        assert_eq!(second.settled_in(folder.path()).unwrap().bytes(), first.bytes());
    }

    #[test]
    fn fields_and_domains_never_run_together() {
        let secret = Secret::random().unwrap();
        assert_ne!(secret.hash("a", &[b"b", b"c"]), secret.hash("a", &[b"bc"]));
        assert_ne!(secret.hash("a", &[b"b"]), secret.hash("ab", &[]));
    }
}

//! The socket: only ours to use, never taken from somebody who listens.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::SidecarError;

/// A socket file that goes away with this value, unless somebody else has put another there.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Listens on a path. A socket that nobody listens on is replaced.
    pub(super) fn bind(path: &Path) -> Result<(Self, UnixListener), SidecarError> {
        let failed = |reason: io::Error| SidecarError::Socket { path: path.to_owned(), reason };
        if let Ok(there) = fs::symlink_metadata(path) {
            if !there.file_type().is_socket() {
                return Err(SidecarError::NotASocket(path.to_owned()));
            }
            match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(_) | Err(_) => return Err(SidecarError::InUse(path.to_owned())),
            }
        }
        // It is made under another name and moved, so that nobody ever finds it open to all or half made.
        let making = path.with_extension(format!("{}.new", std::process::id()));
        remove(&making).map_err(failed)?;
        let listener = UnixListener::bind(&making).map_err(failed)?;
        fs::set_permissions(&making, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let inode = fs::symlink_metadata(&making).map_err(failed)?.ino();
        fs::rename(&making, path).map_err(failed)?;
        Ok((Self { path: path.to_owned(), inode }, listener))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode);
        if ours {
            // A file that stays behind is found to be stale by the next start.
            drop(remove(&self.path));
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{SidecarError, Socket};

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("embed.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (socket, listener) = Socket::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(SidecarError::InUse(_))));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(listener);
        drop(socket);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_is_not_taken_for_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious.txt");
        std::fs::write(&path, "keep me").unwrap();
        assert!(matches!(Socket::bind(&path), Err(SidecarError::NotASocket(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "keep me");
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_is_told() {
        let error = Socket::bind(std::path::Path::new("/nowhere/embed.sock")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/embed.sock") && error.contains("UDS_PATH"), "{error}");
    }
}

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::FileError;
use super::lock::beside;

/// Replaces a file with the content written by `fill`, atomically: temporary file, sync, rename.
///
/// A crash may leave the temporary file, which the next replacement overwrites. The caller holds
/// the lock.
pub(super) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    let temporary = beside(path, ".paceline-tmp");
    let replaced = filled(path, &temporary, fill)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync_folder(path));
    if replaced.is_err() {
        // The first error is returned; a leftover file is overwritten next time.
        let _ = fs::remove_file(&temporary);
    }
    replaced.map_err(FileError::of("rewrite", path))
}

fn filled(
    path: &Path,
    temporary: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(temporary)?);
    fs::set_permissions(temporary, fs::metadata(path)?.permissions())?;
    fill(&mut writer)?;
    writer.flush()?;
    writer.get_ref().sync_all()
}

/// Syncs the rename. Directories can be opened only on Unix.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

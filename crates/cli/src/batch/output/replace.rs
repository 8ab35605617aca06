use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::FileError;
use super::lock::beside;

/// Replaces a file by what `fill` writes, or leaves it as it is: temporary file, sync, rename.
///
/// A crash can leave the temporary file behind; the next replacement overwrites it. The caller
/// holds the file's lock.
pub(super) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    let temporary = beside(path, ".tollgate-tmp");
    let replaced = filled(path, &temporary, fill)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync_folder(path));
    if replaced.is_err() {
        // The first error is the one to tell; a file left over is overwritten next time.
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

/// The rename is on disk once the folder is. Only Unix can open a folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

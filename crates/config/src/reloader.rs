use std::fmt;
use std::future::ready;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use paceline_limiter::limiter::{Attached, Closing, KeyChanges, Limiter, WeakLimiter};
use parking_lot::Mutex;

use crate::config::Config;
use crate::error::{ConfigError, Problem};
use crate::file_watcher::FileWatcher;
use crate::load::{LoadOptions, Loaded, LoadedFile, MAX_FILE_SIZE, ReadFile, load_files};
use crate::open_error::NO_LIMITS;
use crate::tree::{FieldPath, Origin};
use crate::watched_file::{self, WatchedFile};

/// Applies changes of a configuration file to a limiter within a second, on a dedicated thread, until it
/// is dropped. An invalid file has no effect, and is reported in a warning and in the
/// [`status`](Self::status).
///
/// Values of the environment and of flags stay as they were when the configuration was loaded. A reloader
/// doesn't keep the limiter alive.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use paceline_config::Reloader;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("paceline.yaml");
/// # std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
/// let loaded = paceline_config::check(&path)?;
/// let limiter = loaded.config.builder().build()?;
/// let reloading = Reloader::start(&loaded, &limiter)?;
/// assert!(reloading.status().refused.is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "the file is watched until this is dropped"]
pub struct Reloader {
    /// The watchers of the configuration file and of the list file.
    watchers: [Option<FileWatcher>; 2],
    status: Arc<Mutex<ReloadStatus>>,
    /// `None` if no file is watched.
    reload: Option<Box<dyn Fn(Contents) -> ReloadOutcome + Send + Sync>>,
}

/// The contents of the configuration file and of the list file, if they are watched.
type Contents = [Option<io::Result<Vec<u8>>>; 2];

/// The result of [`Reloader::reload`].
#[derive(Debug, Clone)]
pub enum ReloadOutcome {
    /// No file is watched.
    NoFile,
    /// The configuration has not changed.
    Unchanged,
    /// A new configuration is in effect.
    Changed(ReloadStatus),
    /// The new configuration is invalid; the previous one stays in effect.
    Refused(ConfigError),
}

/// The status of a [`Reloader`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReloadStatus {
    /// The latest valid configuration. Changes that need a restart are included, but not in effect yet.
    pub config: Arc<Config>,
    /// The number of changes that were applied.
    pub reloads: u64,
    /// The paths of the values that the last change affected, such as `quotas.gpt-4o`.
    pub changed: Vec<String>,
    /// The problems of the current file, if it is invalid.
    pub refused: Option<ConfigError>,
    /// The paths of the values that take effect after a restart.
    pub needs_restart: Vec<String>,
}

impl Reloader {
    /// Watches the file that a configuration was loaded from. If there is no file, or if it is a pipe,
    /// nothing is watched.
    ///
    /// # Errors
    /// Returns an error if the system can't start a thread.
    pub fn start(loaded: &Loaded, limiter: &Limiter) -> io::Result<Self> {
        Self::start_with(loaded, limiter, |config| config, |_| ())
    }

    /// Watches the file for a limiter whose configuration `adjust` modifies, for example by flags, and
    /// calls `on_change` after each change of the file. Both are called on the thread that watches the
    /// file.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use paceline_config::{Config, Reloader};
    /// # use paceline::provider::OPENAI;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("paceline.yaml");
    /// # std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
    /// let openai_first = |mut config: Config| {
    ///     config.providers.insert(0, OPENAI);
    ///     config
    /// };
    /// let loaded = paceline_config::check(&path)?;
    /// let limiter = openai_first(loaded.config.clone()).builder().build()?;
    /// let _reloading = Reloader::start_with(&loaded, &limiter, openai_first, |status| {
    ///     println!("changed: {}", status.changed.join(", "));
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the system can't start a thread.
    pub fn start_with(
        loaded: &Loaded,
        limiter: &Limiter,
        mut adjust: impl FnMut(Config) -> Config + Send + 'static,
        on_change: impl FnMut(&ReloadStatus) + Send + 'static,
    ) -> io::Result<Self> {
        let in_effect = adjust(loaded.config.clone());
        let status = ReloadStatus {
            config: Arc::new(in_effect.clone()),
            reloads: 0,
            changed: Vec::new(),
            refused: None,
            needs_restart: Vec::new(),
        };
        let status = Arc::new(Mutex::new(status));
        let files = loaded.files.each_ref().map(Option::as_ref).map(|file| {
            // Watch a missing file too, since it may return; the content of a pipe can't be read again.
            let is_file = |path: &Path| path.metadata().map_or(true, |found| found.is_file());
            file.filter(|file| is_file(&file.path))
        });
        let absolute =
            |file: &Option<&LoadedFile>| file.map(|file| path::absolute(&file.path)).transpose();
        let paths = [absolute(&files[0])?, absolute(&files[1])?];
        let state = Arc::new(Mutex::new(ReloadState {
            paths: paths.clone(),
            options: loaded.options.clone(),
            limiter: limiter.downgrade(),
            in_effect,
            status: Arc::clone(&status),
            adjust,
        }));
        let on_change = Arc::new(Mutex::new(on_change));
        let reload = {
            let (state, on_change) = (Arc::clone(&state), Arc::clone(&on_change));
            move |contents| {
                let outcome = state.lock().reload(contents);
                if let ReloadOutcome::Changed(status) = &outcome {
                    on_change.lock()(status);
                }
                outcome
            }
        };
        let mut watchers = [None, None];
        for (index, (path, file)) in paths.into_iter().zip(files).enumerate() {
            let Some((path, file)) = path.zip(file) else { continue };
            let (state, on_change) = (Arc::clone(&state), Arc::clone(&on_change));
            let watched = WatchedFile::with_content(path, MAX_FILE_SIZE, file.content.clone());
            watchers[index] =
                Some(FileWatcher::start(watched, FileWatcher::INTERVAL, move |content| {
                    let status = state.lock().apply_file(index, content);
                    if let Some(status) = status {
                        on_change.lock()(&status);
                    }
                })?);
        }
        let is_watched = watchers.iter().any(Option::is_some);
        let reload = is_watched.then(|| Box::new(reload) as Box<_>);
        Ok(Self { watchers, status, reload })
    }

    /// Reads the files now, whether they have changed or not, and applies them. Blocks on disk I/O.
    ///
    /// The callbacks of [`start_with`](Self::start_with) must not call this, since it would deadlock.
    pub fn reload(&self) -> ReloadOutcome {
        let Some(reload) = &self.reload else { return ReloadOutcome::NoFile };
        // The locks prevent the watchers from applying content that was read earlier.
        let mut files = self.watchers.each_ref().map(|watch| watch.as_ref().map(FileWatcher::file));
        reload(files.each_mut().map(|file| file.as_mut().map(|file| file.read_now())))
    }

    /// Returns the current status.
    pub fn status(&self) -> ReloadStatus {
        self.status.lock().clone()
    }
}

/// Attached to a limiter, so that the file is watched until the limiter is dropped.
impl Attached for Reloader {
    fn close(&self) -> Closing {
        Box::pin(ready(()))
    }

    fn end(&self, _last: Vec<KeyChanges>) {}
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

/// The state of the thread that watches the files.
struct ReloadState<A> {
    /// The configuration file and the list file.
    paths: [Option<PathBuf>; 2],
    options: LoadOptions,
    limiter: WeakLimiter,
    /// The configuration in effect in the limiter.
    in_effect: Config,
    status: Arc<Mutex<ReloadStatus>>,
    adjust: A,
}

impl<A: FnMut(Config) -> Config> ReloadState<A> {
    /// Applies new content of the file at index `file` of `paths`. Returns `None` if the limiter was
    /// dropped.
    fn apply_file(&mut self, file: usize, content: io::Result<Vec<u8>>) -> Option<ReloadStatus> {
        let limiter = self.limiter.upgrade()?;
        let path = self.paths[file].clone()?;
        let mut contents = [None, None];
        contents[file] = Some(content);
        let file = path.display();
        match self.load(contents, &limiter) {
            Ok(config) => {
                self.apply(config, &limiter);
                let status = self.count_reload();
                tracing::info!(
                    %file,
                    changed = %status.changed.join(", "),
                    needs_restart = %status.needs_restart.join(", "),
                    "applied new configuration"
                );
            }
            Err(error) => {
                tracing::warn!(%file, %error, "invalid configuration; the previous one stays in effect");
                self.status.lock().refused = Some(error);
            }
        }
        Some(self.status.lock().clone())
    }

    /// Applies the contents of all files.
    fn reload(&mut self, contents: Contents) -> ReloadOutcome {
        let Some(limiter) = self.limiter.upgrade() else { return ReloadOutcome::NoFile };
        match self.load(contents, &limiter) {
            Ok(config) => {
                let is_new = self.apply(config, &limiter);
                if is_new {
                    ReloadOutcome::Changed(self.count_reload())
                } else {
                    ReloadOutcome::Unchanged
                }
            }
            Err(error) => {
                self.status.lock().refused = Some(error.clone());
                ReloadOutcome::Refused(error)
            }
        }
    }

    /// Applies a configuration. Returns `true` if it differs from the one in effect.
    fn apply(&mut self, mut config: Config, limiter: &Limiter) -> bool {
        // Not under the lock, since listeners of quota changes may call `status`.
        let applied = config.apply(&self.in_effect, limiter);
        self.in_effect = config.in_effect(&self.in_effect);
        let mut status = self.status.lock();
        *status = ReloadStatus {
            config: Arc::new(config),
            reloads: status.reloads,
            changed: applied.changed,
            refused: None,
            needs_restart: applied.needs_restart,
        };
        !status.changed.is_empty() || !status.needs_restart.is_empty()
    }

    /// Counts a reload, and returns the new status.
    fn count_reload(&self) -> ReloadStatus {
        let mut status = self.status.lock();
        status.reloads += 1;
        status.clone()
    }

    /// Loads the configuration from the files; `contents` replaces the contents of files that were already
    /// read. A configuration that doesn't limit anything is refused, since the file may be truncated.
    fn load(&mut self, contents: Contents, limiter: &Limiter) -> Result<Config, ConfigError> {
        let mut contents = contents.into_iter();
        let read = self.paths.each_ref().map(|path| {
            let (content, path) = (contents.next().flatten(), path.clone()?);
            let content = content.unwrap_or_else(|| watched_file::read(&path, MAX_FILE_SIZE));
            Some(ReadFile { path, content })
        });
        let config = (self.adjust)(load_files(&self.options, read)?.config);
        let was_limited = !self.in_effect.is_unlimited(limiter);
        if was_limited && config.is_unlimited(limiter) {
            let file = self.paths.iter().flatten().next().map_or(Path::new(""), PathBuf::as_path);
            let file = file.display().to_string().into();
            let origin = Origin::File { file, position: None };
            return Err(ConfigError::new(vec![Problem::new(
                origin,
                &FieldPath::default(),
                NO_LIMITS,
            )]));
        }
        Ok(config)
    }
}

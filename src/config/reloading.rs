use std::fmt;
use std::future::ready;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::config::Config;
use super::error::{ConfigError, Problem};
use super::load::{Known, LARGEST, LoadOptions, Loaded, Read, load_read};
use super::open::NO_LIMITS;
use super::tree::{Origin, Steps};
use super::watch::Watch;
use super::watched::Watched;
use crate::limiter::{Attached, Closing, KeyChanges, Limiter, WeakLimiter};

/// Keeps a limiter at what its file says: within a second of a change, from a thread of its own, until
/// this is dropped. A file that can't be used changes nothing, and is told of in a warning and in the
/// [`status`](Self::status).
///
/// What the environment and flags say is as it was when the configuration was loaded. It doesn't keep
/// the limiter alive.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate::config::{self, Reloading};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("tollgate.yaml");
/// # std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
/// let loaded = config::check(&path)?;
/// let limiter = loaded.config.builder().build()?;
/// let reloading = Reloading::start(&loaded, &limiter)?;
/// assert!(reloading.status().refused.is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "the file is followed until this is dropped"]
pub struct Reloading {
    /// Of the configuration file and of the list file.
    watches: [Option<Watch>; 2],
    status: Arc<Mutex<ReloadingStatus>>,
    /// `None` where nothing is followed.
    reload: Option<Box<dyn Fn(Contents) -> Reload + Send + Sync>>,
}

/// The contents of the configuration file and of the list file, as far as they are followed.
type Contents = [Option<io::Result<Vec<u8>>>; 2];

/// What [`Reloading::reload`] came to.
#[derive(Debug, Clone)]
pub enum Reload {
    /// No file is followed.
    NoFile,
    /// The files say what is in use already.
    Unchanged,
    /// A new configuration is in use.
    Changed(ReloadingStatus),
    /// The files can't be used; the configuration stays as it was.
    Refused(ConfigError),
}

/// How the following of a file goes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReloadingStatus {
    /// The configuration in effect; of what needs a restart it is what will be.
    pub config: Arc<Config>,
    /// How many new files were taken.
    pub reloads: u64,
    /// The paths of what the last new file has changed, as `quotas.gpt-4o`.
    pub changed: Vec<String>,
    /// Why the file as it is now isn't taken, if so.
    pub refused: Option<ConfigError>,
    /// What of the configuration is only used after a restart.
    pub needs_restart: Vec<String>,
}

impl Reloading {
    /// Follows the file that a configuration was loaded from; nothing, if it was none, or a pipe.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(loaded: &Loaded, limiter: &Limiter) -> io::Result<Self> {
        Self::start_with(loaded, limiter, |config| config, |_| ())
    }

    /// The same for a limiter that was made of what `adjust` makes of the configuration, as of one
    /// whose flags stand above all files; and tells after each change of the file how it went. Both
    /// are called on the thread that follows it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tollgate::config::{self, Config, Reloading};
    /// # use tollgate::provider::OPENAI;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("tollgate.yaml");
    /// # std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
    /// let openai_first = |mut config: Config| {
    ///     config.providers.insert(0, OPENAI);
    ///     config
    /// };
    /// let loaded = config::check(&path)?;
    /// let limiter = openai_first(loaded.config.clone()).builder().build()?;
    /// let _reloading = Reloading::start_with(&loaded, &limiter, openai_first, |status| {
    ///     println!("changed: {}", status.changed.join(", "));
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start_with(
        loaded: &Loaded,
        limiter: &Limiter,
        mut adjust: impl FnMut(Config) -> Config + Send + 'static,
        tell: impl FnMut(&ReloadingStatus) + Send + 'static,
    ) -> io::Result<Self> {
        let in_effect = adjust(loaded.config.clone());
        let status = ReloadingStatus {
            config: Arc::new(in_effect.clone()),
            reloads: 0,
            changed: Vec::new(),
            refused: None,
            needs_restart: Vec::new(),
        };
        let status = Arc::new(Mutex::new(status));
        let files = loaded.files.each_ref().map(Option::as_ref).map(|file| {
            // A file that is gone for a moment comes again; what a pipe said doesn't.
            let is_file = |path: &Path| path.metadata().map_or(true, |found| found.is_file());
            file.filter(|file| is_file(&file.path))
        });
        let absolute =
            |file: &Option<&Known>| file.map(|file| path::absolute(&file.path)).transpose();
        let paths = [absolute(&files[0])?, absolute(&files[1])?];
        let follower = Arc::new(Mutex::new(Follower {
            paths: paths.clone(),
            options: loaded.options.clone(),
            limiter: limiter.downgrade(),
            in_effect,
            status: Arc::clone(&status),
            adjust,
        }));
        let tell = Arc::new(Mutex::new(tell));
        let reload = {
            let (follower, tell) = (Arc::clone(&follower), Arc::clone(&tell));
            move |contents| {
                let reload = follower.lock().reload(contents);
                if let Reload::Changed(status) = &reload {
                    tell.lock()(status);
                }
                reload
            }
        };
        let mut watches = [None, None];
        for (which, (path, file)) in paths.into_iter().zip(files).enumerate() {
            let Some((path, file)) = path.zip(file) else { continue };
            let (follower, tell) = (Arc::clone(&follower), Arc::clone(&tell));
            let watched = Watched::holding(path, LARGEST, file.content.clone());
            watches[which] = Some(Watch::start(watched, Watch::INTERVAL, move |content| {
                let taken = follower.lock().take(which, content);
                if let Some(status) = taken {
                    tell.lock()(&status);
                }
            })?);
        }
        let is_followed = watches.iter().any(Option::is_some);
        let reload = is_followed.then(|| Box::new(reload) as Box<_>);
        Ok(Self { watches, status, reload })
    }

    /// Reads the files now, whether they have changed or not, and takes what they say. Blocks on the
    /// disk. Not to be called by what was given to [`start_with`](Self::start_with).
    pub fn reload(&self) -> Reload {
        let Some(reload) = &self.reload else { return Reload::NoFile };
        // Until it is done no watch reads its file, and takes what was read before.
        let mut files = self.watches.each_ref().map(|watch| watch.as_ref().map(Watch::file));
        reload(files.each_mut().map(|file| file.as_mut().map(|file| file.now())))
    }

    /// How it goes.
    pub fn status(&self) -> ReloadingStatus {
        self.status.lock().clone()
    }
}

/// Goes with a limiter to its end, so that the file is followed for as long.
impl Attached for Reloading {
    fn close(&self) -> Closing {
        Box::pin(ready(()))
    }

    fn end(&self, _last: Vec<KeyChanges>) {}
}

impl fmt::Debug for Reloading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").finish_non_exhaustive()
    }
}

/// What the thread needs.
struct Follower<A> {
    /// The configuration file and the list file.
    paths: [Option<PathBuf>; 2],
    options: LoadOptions,
    limiter: WeakLimiter,
    /// What the limiter goes by.
    in_effect: Config,
    status: Arc<Mutex<ReloadingStatus>>,
    adjust: A,
}

impl<A: FnMut(Config) -> Config> Follower<A> {
    /// How it goes with this content of one of the files; `None` if the limiter is gone.
    fn take(&mut self, which: usize, content: io::Result<Vec<u8>>) -> Option<ReloadingStatus> {
        let limiter = self.limiter.upgrade()?;
        let path = self.paths[which].clone()?;
        let file = path.display();
        let mut contents = [None, None];
        contents[which] = Some(content);
        match self.load(contents, &limiter) {
            Ok(config) => {
                self.apply(config, &limiter);
                let status = self.count();
                tracing::info!(
                    %file,
                    changed = %status.changed.join(", "),
                    needs_restart = %status.needs_restart.join(", "),
                    "a new configuration is in use"
                );
            }
            Err(error) => {
                tracing::warn!(%file, %error, "the new configuration can't be used; the old one stays");
                self.status.lock().refused = Some(error);
            }
        }
        Some(self.status.lock().clone())
    }

    /// What comes of these contents of all files.
    fn reload(&mut self, contents: Contents) -> Reload {
        let Some(limiter) = self.limiter.upgrade() else { return Reload::NoFile };
        match self.load(contents, &limiter) {
            Ok(config) => {
                let is_new = self.apply(config, &limiter);
                if is_new { Reload::Changed(self.count()) } else { Reload::Unchanged }
            }
            Err(error) => {
                self.status.lock().refused = Some(error.clone());
                Reload::Refused(error)
            }
        }
    }

    /// Says whether it differs from what is in use.
    fn apply(&mut self, config: Config, limiter: &Limiter) -> bool {
        // Under no lock: those who hear of changed quotas may ask how it goes.
        let applied = config.apply(&self.in_effect, limiter);
        self.in_effect = config.in_effect(&self.in_effect);
        let mut status = self.status.lock();
        *status = ReloadingStatus {
            config: Arc::new(config),
            reloads: status.reloads,
            changed: applied.changed,
            refused: None,
            needs_restart: applied.needs_restart,
        };
        !status.changed.is_empty() || !status.needs_restart.is_empty()
    }

    fn count(&self) -> ReloadingStatus {
        let mut status = self.status.lock();
        status.reloads += 1;
        status.clone()
    }

    /// What the files say now, those with these contents as these say. What a limiter couldn't be made
    /// of isn't followed either: it may be a file that is cut off.
    fn load(&mut self, contents: Contents, limiter: &Limiter) -> Result<Config, ConfigError> {
        let mut read = self.paths.each_ref().map(|path| path.as_deref().map(Read::now));
        for (read, content) in read.iter_mut().zip(contents) {
            if let (Some(read), Some(content)) = (read, content) {
                read.content = content;
            }
        }
        let config = (self.adjust)(load_read(&self.options, read)?.config);
        let limited = !self.in_effect.limits_nothing(limiter);
        if limited && config.limits_nothing(limiter) {
            let file = self.paths.iter().flatten().next().map_or(Path::new(""), PathBuf::as_path);
            let file = file.display().to_string().into();
            let origin = Origin::File { file, position: None };
            return Err(ConfigError::new(vec![Problem::new(origin, &Steps::default(), NO_LIMITS)]));
        }
        Ok(config)
    }
}

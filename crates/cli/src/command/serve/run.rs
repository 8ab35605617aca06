use tokio::sync::oneshot;

use super::super::Exit;
use super::super::output::Output;
use super::super::run::text;
use super::signals::{Signal, Signals};
use super::{ServeArgs, files, log};
use crate::terminal::say;
use tollgate::config::ReloadOutcome;
use tollgate_serve::{Serve, Server, Tokens};

/// Serves until it is asked to stop.
///
/// # Errors
/// Says what is wrong with the configuration, or why it can't listen.
pub(in crate::command) async fn serve(
    args: &ServeArgs,
    out: &mut Output<'_>,
) -> Result<Exit, String> {
    let mut signals = Signals::listen().map_err(text)?;
    let loaded = args.load()?;
    let said = Serve::of(&loaded.config).map_err(text)?;
    log::start(said.log);
    files::allow(said);
    let limiter = tollgate_serve::limiter(&loaded.config).map_err(text)?;
    let tokens = Tokens::from_environment();
    let server = Server::bind(loaded.config.clone(), limiter, tokens).await.map_err(text)?;
    server.follow(&loaded).map_err(text)?;
    out.line(&format_args!("listening on http://{}", server.addr()))?;
    serve_until_stopped(&server, &mut signals).await;
    Ok(shut_down(server, &mut signals).await)
}

async fn serve_until_stopped(server: &Server, signals: &mut Signals) {
    loop {
        match signals.next().await {
            Signal::Stop => return,
            Signal::Reload => tell(&server.reload().await),
            Signal::Ignored(name) => {
                tracing::info!("{name}: ignored; SIGTERM or SIGINT ends the server");
            }
        }
    }
}

fn tell(reload: &ReloadOutcome) {
    match reload {
        ReloadOutcome::NoFile => {
            tracing::info!("SIGHUP: no configuration file in use, nothing to reload")
        }
        ReloadOutcome::Unchanged => tracing::info!("SIGHUP: the configuration has not changed"),
        ReloadOutcome::Changed(status) => tracing::info!(
            changed = %status.changed.join(", "),
            needs_restart = %status.needs_restart.join(", "),
            "SIGHUP: configuration reloaded"
        ),
        ReloadOutcome::Refused(error) => {
            tracing::warn!(%error, "SIGHUP: invalid configuration, the previous one stays in use");
        }
    }
}

/// The second signal cuts off the answers that are on their way; the third ends all at once.
async fn shut_down(server: Server, signals: &mut Signals) -> Exit {
    let (cut, cutting) = oneshot::channel();
    let mut ending = std::pin::pin!(server.shutdown_until(async {
        let _ = cutting.await;
    }));
    let (ended, exit) = tokio::select! {
        ended = &mut ending => (ended, Exit::Success),
        () = signals.stop() => {
            let _ = cut.send(());
            tokio::select! {
                ended = ending => (ended, Exit::Interrupted),
                () = signals.stop() => return Exit::Interrupted,
            }
        }
    };
    match ended {
        Ok(()) => exit,
        Err(error) => {
            say(&error);
            Exit::Unsaved
        }
    }
}

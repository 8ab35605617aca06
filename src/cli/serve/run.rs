use super::super::Exit;
use super::super::output::Output;
use super::super::run::text;
use super::super::signal::asked_to_stop;
use super::{ServeArgs, log};
use crate::serve::{Server, Tokens};

/// Serves until it is asked to stop.
///
/// # Errors
/// Says what is wrong with the configuration, or why it can't listen.
pub(in crate::cli) async fn serve(args: &ServeArgs, out: &mut Output<'_>) -> Result<Exit, String> {
    let loaded = args.load()?;
    log::start(loaded.config.serve.log);
    let limiter = loaded.config.server_limiter().map_err(text)?;
    let tokens = Tokens::from_environment();
    let server = Server::bind(loaded.config.clone(), limiter, tokens).await.map_err(text)?;
    server.follow(&loaded).map_err(text)?;
    let mut asked = std::pin::pin!(asked_to_stop());
    tokio::select! {
        // Asked first: whoever reads where it listens may interrupt it.
        biased;
        _ = &mut asked => {}
        printed = async { out.line(&format_args!("listening on http://{}", server.addr())) } => {
            printed?;
            asked.await.map_err(text)?;
        }
    }
    tokio::select! {
        stopped = server.shutdown() => stopped.map(|()| Exit::Success).map_err(text),
        _ = asked_to_stop() => Ok(Exit::Interrupted),
    }
}

use super::BenchArgs;
use super::load::Load;
use super::report::BenchReport;
use crate::command::Exit;
use crate::command::stdout::Stdout;

/// Measures a running server and prints the report.
///
/// # Errors
/// Returns the reason why the server is unreachable, or an error of standard output.
pub(crate) async fn bench(args: &BenchArgs, out: &mut Stdout<'_>) -> Result<Exit, String> {
    let address = args.url.resolve(args.allow_remote).await?;
    let measured = Load::new(args, address)?.run().await?;
    let report = BenchReport::new(args, &measured);
    match args.json {
        true => out.json(&report)?,
        false => out.line(&report)?,
    }
    Ok(match measured {
        _ if measured.interrupted => Exit::Interrupted,
        _ if report.errors > 0 => Exit::SomeFailed,
        _ => Exit::Success,
    })
}

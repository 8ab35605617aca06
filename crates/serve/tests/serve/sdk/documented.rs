//! The Python blocks of the documentation, by the official SDKs.

use std::process::Stdio;

use paceline_testing::markdown::{Page, pages};

use super::open;
use super::python::Python;
use super::serve;

#[tokio::test]
async fn python_blocks_of_the_documentation_run() {
    let Some(python) = Python::with_sdks() else { return };
    let provider = serve(open()).await;
    let upstream = format!("base_url: 'http://{}'", provider.addr());
    let config = format!(
        "quotas: {{gpt-4o: {{rpm: 500}}, 'claude-*': {{rpm: 50}}}}
serve: {{listen: '127.0.0.1:0', upstreams: {{
            openai: {{{upstream}, provider: openai}},
            anthropic: {{{upstream}, provider: anthropic}}}}}}"
    );
    let config = paceline_serve::parse(&config).expect("a configuration");
    let limiter = config.limiter().expect("a limiter");
    let tokens = paceline_serve::Tokens::default();
    let proxy = paceline_serve::Server::bind(config, limiter, tokens).await.expect("a free port");
    let proxy = proxy.addr().to_string();
    let blocks = pages().into_iter().flat_map(|page: Page| page.blocks());
    let blocks: Vec<_> = blocks.filter(|block| block.language == "python").collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let code = block.text.replace("127.0.0.1:8080", &proxy);
        let mut command = tokio::process::Command::new(python.interpreter());
        command.args(["-c", &code]).env("NO_PROXY", "127.0.0.1").stdin(Stdio::null());
        command.envs([("OPENAI_API_KEY", "any"), ("ANTHROPIC_API_KEY", "any")]);
        let output = command.kill_on_drop(true).output().await.expect("Python starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {stderr}", block.place);
        assert!(!output.stdout.is_empty(), "{}: no output", block.place);
    }
}

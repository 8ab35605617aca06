//! Lookup of profiles by URL.

use paceline_provider::{
    AI21, ANTHROPIC, ARK, AZURE, BASETEN, BEDROCK, BEDROCK_MANTLE, CEREBRAS, COHERE, COMPATIBLE,
    DASHSCOPE, DEEPINFRA, DEEPSEEK, FIREWORKS, GEMINI, GITHUB_MODELS, GROQ, HUGGINGFACE,
    HYPERBOLIC, MINIMAX, MISTRAL, MOONSHOT, NEBIUS, NVIDIA, OLLAMA, OLLAMA_CLOUD, OPENAI,
    OPENROUTER, Profile, SAMBANOVA, TOGETHER, VERTEX, VERTEX_ANTHROPIC, VOYAGE, WRITER, XAI, ZAI,
};

#[test]
fn profile_is_found_by_host_path_or_gateway() {
    for (url, profile) in FOUND {
        assert_eq!(Profile::find(url), *profile, "{url}");
    }
    for profile in Profile::all() {
        assert_eq!(Profile::named(profile.name()), Some(*profile));
    }
}

const FOUND: &[(&str, Profile)] = &[
    ("https://api.openai.com/v1/responses", OPENAI),
    ("https://mine.openai.azure.com/openai/v1/responses", AZURE),
    ("https://mine.services.ai.azure.com/models/chat/completions", AZURE),
    ("http://proxy/openai/deployments/d/chat/completions", AZURE),
    ("https://api.anthropic.com/v1/messages", ANTHROPIC),
    ("http://localhost:4000/anthropic/v1/messages?beta=true", ANTHROPIC),
    (
        "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
        VERTEX_ANTHROPIC,
    ),
    (
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
        VERTEX,
    ),
    ("https://aiplatform.googleapis.com/v1/p/endpoints/openapi/chat/completions", VERTEX),
    ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", GEMINI),
    ("http://proxy/x/v1beta/models/gemini-2.5-pro:generateContent", GEMINI),
    ("http://proxy/google-vertex/v1/publishers/google/models/m:generateContent", VERTEX),
    ("https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", BEDROCK),
    ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/model/m/invoke", BEDROCK),
    ("https://bedrock-mantle.us-east-1.api.aws/v1/chat/completions", BEDROCK_MANTLE),
    ("https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages", BEDROCK_MANTLE),
    ("https://bedrock-mantle.us-east-1.api.aws.evil.com/v1/responses", COMPATIBLE),
    ("http://proxy/bedrock/model/m%3A0/converse-stream", BEDROCK),
    ("https://api.mistral.ai/v1/chat/completions", MISTRAL),
    ("https://api.groq.com/openai/v1/chat/completions", GROQ),
    ("http://localhost/groq/openai/v1/chat/completions", GROQ),
    ("https://api.cohere.com/v2/chat", COHERE),
    ("https://api.deepseek.com/chat/completions", DEEPSEEK),
    ("https://api.moonshot.ai/v1/chat/completions", MOONSHOT),
    ("https://api.moonshot.cn/v1/chat/completions", MOONSHOT),
    ("http://proxy/moonshot/v1/chat/completions", MOONSHOT),
    ("https://api.x.ai/v1/chat/completions", XAI),
    ("https://us-east-1.api.x.ai/v1/responses", XAI),
    ("https://openrouter.ai/api/v1/chat/completions", OPENROUTER),
    ("https://api.together.xyz/v1/chat/completions", TOGETHER),
    ("https://api.cerebras.ai/v1/chat/completions", CEREBRAS),
    ("https://api.fireworks.ai/inference/v1/chat/completions", FIREWORKS),
    ("https://api.sambanova.ai/v1/chat/completions", SAMBANOVA),
    ("https://api.minimax.io/v1/chat/completions", MINIMAX),
    ("https://api.minimaxi.com/anthropic/v1/messages", MINIMAX),
    ("https://inference.baseten.co/v1/chat/completions", BASETEN),
    ("https://api.deepinfra.com/v1/openai/chat/completions", DEEPINFRA),
    ("https://api.hyperbolic.xyz/v1/chat/completions", HYPERBOLIC),
    ("https://api.tokenfactory.nebius.com/v1/chat/completions", NEBIUS),
    ("https://api.ai21.com/studio/v1/chat/completions", AI21),
    ("https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions", DASHSCOPE),
    ("https://ws-1.cn-beijing.maas.aliyuncs.com/compatible-mode/v1/chat/completions", DASHSCOPE),
    ("https://router.huggingface.co/together/v1/chat/completions", HUGGINGFACE),
    ("https://api.writer.com/v1/chat", WRITER),
    ("https://api.z.ai/api/paas/v4/chat/completions", ZAI),
    ("https://api.z.ai/api/anthropic/v1/messages", ZAI),
    ("https://open.bigmodel.cn/api/paas/v4/chat/completions", ZAI),
    ("https://ark.cn-beijing.volces.com/api/v3/chat/completions", ARK),
    ("https://ark.ap-southeast.bytepluses.com/api/v3/chat/completions", ARK),
    ("https://models.github.ai/inference/chat/completions", GITHUB_MODELS),
    ("https://integrate.api.nvidia.com/v1/chat/completions", NVIDIA),
    ("https://ollama.com/api/chat", OLLAMA_CLOUD),
    ("https://ollama.com/v1/chat/completions", OLLAMA_CLOUD),
    ("https://api.voyageai.com/v1/embeddings", VOYAGE),
    ("http://127.0.0.1:11434/v1/chat/completions", OLLAMA),
    ("http://gpu-7/api/chat", OLLAMA),
    ("http://gpu-7:8000/v1/chat/completions", COMPATIBLE),
    ("https://api.openai.com.evil.com/v1/chat/completions", COMPATIBLE),
    ("https://evil.com/?x=https://api.openai.com/", COMPATIBLE),
    ("", COMPATIBLE),
];

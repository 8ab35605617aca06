//! Server mode: the layer as the guard of a service's own endpoints.

mod body;
mod fields;
mod future;
mod head;
mod layer;
mod peer;
mod refusal;
mod reply;
mod scope;
mod scopes;
mod service;

pub use body::RespondBody;
pub use future::RespondFuture;
pub use head::Head;
pub use layer::RespondLayer;
pub use peer::{InvalidNetwork, Proxies};
pub use reply::Reply;
pub use scope::Scope;
pub use scopes::Scopes;
pub use service::Respond;

//! The prices of models, by which spending is limited.
//!
//! A limit in [`Dimension::usd`](crate::quota::Dimension::usd) counts money in micro-dollars: millionths of a US dollar.
//! The middleware prices each request whose limiter has such a limit. It reserves the most that the request can
//! cost, and charges the price of the reported usage when the response ends.
//!
//! ```
//! use paceline::Limiter;
//! use paceline::provider::OPENAI;
//! use paceline::quota::{Quota, Usage, Usd};
//!
//! // 50 dollars a day.
//! let limiter = Limiter::builder().quota("tenant:7", Quota::new().usd_per_day(Usd::from_dollars(50))).build()?;
//! let usage = Usage { input: 1_000_000, output: 100_000, ..Usage::default() };
//! let price = limiter.prices().of(OPENAI, "gpt-4o").expect("a built-in price");
//! assert_eq!(price.cost(&usage), 3_500_000); // $2.50 and $1.00
//! # Ok::<(), paceline::limiter::BuildError>(())
//! ```

mod model_price;
mod prices;
mod rates;
mod row;

pub use model_price::Price;
pub use prices::{InvalidPrices, Prices};

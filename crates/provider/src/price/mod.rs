//! The prices of models, by which spending is limited.
//!
//! A limit in [`Dimension::usd`](paceline_limiter::quota::Dimension::usd) counts money in micro-dollars: millionths of a US dollar.
//! The layer of paceline prices each request whose limiter has such a limit, by the built-in prices or those of its
//! `RateLimitLayer::prices`. It reserves the most that the request can cost, and charges the price of the reported usage
//! when the response ends.
//!
//! ```
//! use paceline_provider::price::Prices;
//! use paceline_provider::OPENAI;
//! use paceline_limiter::quota::{Quota, Usage, Usd};
//!
//! // 50 dollars a day.
//! let quota = Quota::new().usd_per_day(Usd::from_dollars(50));
//! # let _ = quota;
//! let usage = Usage { input: 1_000_000, output: 100_000, ..Usage::default() };
//! let price = Prices::built_in().of(OPENAI, "gpt-4o").expect("a built-in price");
//! assert_eq!(price.cost(&usage), 3_500_000); // $2.50 and $1.00
//! ```

mod model_price;
mod price_list;
mod prices;
mod rates;
mod row;

pub use model_price::Price;
pub use price_list::PriceList;
pub use prices::{InvalidPrices, Prices};

/// Joins a limiter to a bus.
#[derive(Debug)]
pub struct Agent {}
